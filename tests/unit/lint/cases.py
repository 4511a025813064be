"""Clusters for the rules, written down in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pulsar_advisor.lint.rule import Case, Rule, Violation
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from states import BrokerRow, BundleRow, cluster_state

PACKAGE = "org.apache.pulsar.broker.loadbalance.impl."
MIB = float(1 << 20)


def case(
    *usages: float,
    settings: Mapping[str, str] | None = None,
    dynamic: Mapping[str, str] | None = None,
    brokers: Sequence[BrokerRow] = (),
    bundles: Sequence[BundleRow] = (),
    shedder: str | None = None,
    placement: str | None = None,
    runtime: Mapping[str, Mapping[str, str]] | None = None,
    **state: Any,
) -> Case:
    """Brokers at these usages (percent of CPU), each with 1 MiB/s and 100 msg/s per point."""
    texts = dict(settings or {})
    if shedder:
        texts["loadBalancerLoadSheddingStrategy"] = PACKAGE + shedder
    if placement:
        texts["loadBalancerLoadPlacementStrategy"] = PACKAGE + placement
    rows = [
        BrokerRow(
            f"b{number}:8080", cpu=(usage, 100), traffic=(usage * 50, usage * 50, usage * MIB / 2, usage * MIB / 2)
        )
        for number, usage in enumerate(usages, start=1)
    ]
    of = cluster_state([*rows, *brokers], bundles, **state)
    by_broker = runtime if runtime is not None else dict.fromkeys(of.brokers.ids, texts)
    return Case(of, resolve_settings(of.pulsar_version, texts, dynamic), by_broker, dynamic or {})


def violation(rule: Rule, of: Case) -> Violation:
    """What a rule finds in a cluster that breaks it."""
    found = rule.find(of)
    assert found is not None, f"{rule.name} finds nothing"
    return found
