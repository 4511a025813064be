"""What runs on the brokers is concluded from what they say."""

from __future__ import annotations

import pytest

from pulsar_advisor.capture.surfaces import oldest_release, prevailing_load_manager, settings_line
from pulsar_advisor.model.configuration.class_names import load_manager_kind

PACKAGE = "org.apache.pulsar.broker.loadbalance"


@pytest.mark.parametrize(
    ("report_type", "class_name", "kind"),
    [
        ("LocalBrokerData", None, "modular"),
        ("LoadReport", f"{PACKAGE}.impl.ModularLoadManagerImpl", "simple"),
        (None, f"{PACKAGE}.impl.ModularLoadManagerImpl", "modular"),
        (None, f"{PACKAGE}.impl.SimpleLoadManagerImpl", "simple"),
        (None, f"{PACKAGE}.extensions.ExtensibleLoadManagerImpl", "extensible"),
        # As Pulsar's documentation of 3.1 says it (develop-load-manager): there is no such class.
        (None, f"{PACKAGE}.impl.ExtensibleLoadManagerImpl", None),
        ("LoadReport", f"{PACKAGE}.impl.ExtensibleLoadManagerImpl", "simple"),
        (None, f"{PACKAGE}.NoopLoadManager", None),
        (None, None, None),
    ],
)
def test_the_report_tells_the_manager_before_the_class_name(
    report_type: str | None, class_name: str | None, kind: str | None
) -> None:
    assert load_manager_kind(report_type, class_name) == kind


def test_in_a_migration_the_leader_decides() -> None:
    assert prevailing_load_manager({"a": "modular", "b": "modular", "c": "extensible"}, leader="c") == "extensible"


def test_without_a_leader_the_majority_decides() -> None:
    assert prevailing_load_manager({"a": "modular", "b": "modular", "c": "extensible"}, leader=None) == "modular"


@pytest.mark.parametrize(
    ("releases", "oldest"),
    [(["4.0.10", "4.0.8"], "4.0.8"), (["4.2.4", "5.0.0-M1"], "4.2.4"), (["2.11.0", "2.9.5"], "2.9.5"), ([], None)],
)
def test_releases_are_compared_as_numbers(releases: list[str], oldest: str | None) -> None:
    assert oldest_release(releases) == oldest


def test_settings_outside_the_allow_list_are_dropped() -> None:
    values = {"loadBalancerEnabled": "true", "brokerClientAuthenticationParameters": "token:secret"}
    assert settings_line("runtime", "b1", values)["values"] == {"loadBalancerEnabled": "true"}
