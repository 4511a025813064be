"""Kinds of namespaces, and what releases make of them."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.cluster.namespaces import (
    NamespaceKind,
    bundle_namespace,
    is_never_shed,
    is_pulsars_own,
    is_system_service_namespace,
    kind_of,
    require_namespace,
)
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.errors import DataNotFit

OLD, NEW = resolve_settings("4.0.8").values, resolve_settings("4.2.4").values


@pytest.mark.parametrize(
    ("namespace", "kind"),
    [
        ("pulsar/system", NamespaceKind.SYSTEM),
        ("pulsar/host:8080", NamespaceKind.HEARTBEAT),
        ("pulsar/cluster/host:8080", NamespaceKind.HEARTBEAT),
        ("sla-monitor/host:8080", NamespaceKind.SLA_MONITOR),
        ("sla-monitor/cluster/host:8080", NamespaceKind.SLA_MONITOR),
        ("pulsar/mine", NamespaceKind.USER),
        ("pulsar/system-2", NamespaceKind.USER),
        ("pulsar/host:http", NamespaceKind.USER),
        ("pulsar/host:\u0663", NamespaceKind.USER),
        ("sla-monitor/mine", NamespaceKind.USER),
        ("public/default", NamespaceKind.USER),
        ("my-pulsar/host:8080", NamespaceKind.USER),
    ],
)
def test_a_kind_goes_by_the_whole_name(namespace: str, kind: NamespaceKind) -> None:
    assert kind_of(namespace) is kind
    assert is_pulsars_own(namespace) is (kind is not NamespaceKind.USER)


@pytest.mark.parametrize(
    ("namespace", "release", "special"),
    [
        ("pulsar/host:8080", "4.0.8", True),
        ("pulsar/host:8080", "4.2.4", True),
        ("pulsar/cluster/host:8080", "4.0.8", True),
        ("sla-monitor/host:8080", "4.0.8", False),
        ("sla-monitor/host:8080", "4.2.0", True),
        ("sla-monitor/cluster/host:8080", "4.0.8", True),
        ("pulsar/system", "4.0.8", False),
        ("pulsar/system", "2.11.0", True),
        ("public/default", "4.2.4", False),
    ],
)
def test_heartbeat_and_sla_namespaces_by_release(namespace: str, release: str, special: bool) -> None:
    assert is_never_shed(namespace, resolve_settings(release).values) is special


def test_a_name_without_a_valid_namespace_is_taken_whole() -> None:
    assert bundle_namespace("t/n/0x0_0x1", NEW) == "t/n"
    assert bundle_namespace("bundle-1", NEW) == "bundle-1"
    assert bundle_namespace("t/c/n/0x0_0x1", OLD) == "t/c/n"
    assert bundle_namespace("t/c/n/0x0_0x1", NEW) == "t/c/n/0x0_0x1"


@pytest.mark.parametrize(
    ("namespace", "left_out"),
    [("pulsar/system", True), ("pulsar/host:8080", True), ("pulsar/mine", False), ("t/n", False)],
)
def test_top_bundles_leave_out_the_system_namespace_too(namespace: str, left_out: bool) -> None:
    assert is_system_service_namespace(namespace, NEW) is left_out


def test_a_name_that_is_no_namespace_of_the_release_is_refused() -> None:
    require_namespace("t/c/n", OLD)
    with pytest.raises(DataNotFit, match="'t/c/n' is not a namespace of this release"):
        require_namespace("t/c/n", NEW)
