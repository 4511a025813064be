"""A leader's view in a few words, and a decision read back as names."""

from __future__ import annotations

from typing import Any

from conformance import codes
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import LoadData
from pulsar_advisor.model.strategy.decision import SheddingDecision
from vector_load import load_of, settings_of

MIB = 1024 * 1024


def settings(release: str = "4.0.8", **config: object) -> LoadBalancerSettings:
    return settings_of(config, release)


def broker(cpu_percent: float, bundles: list[str], *, mib_per_s: float = 0, rate_per_s: float = 0) -> dict[str, Any]:
    return {
        "cpu": [cpu_percent, 100],
        "bundles": bundles,
        "msgThroughputIn": mib_per_s * MIB,
        "msgRateIn": rate_per_s,
    }


def bundle(*, mib_per_s: float = 0, rate_per_s: float = 0) -> dict[str, Any]:
    return {"shortTerm": {"msgThroughputIn": mib_per_s * MIB, "msgRateIn": rate_per_s}}


def view(
    brokers: dict[str, Any],
    bundles: dict[str, Any],
    recently_unloaded: tuple[str, ...] = (),
    of: LoadBalancerSettings | None = None,
) -> LoadData:
    case = {"brokers": brokers, "bundles": bundles, "recentlyUnloaded": dict.fromkeys(recently_unloaded, 1)}
    return load_of(case, of or settings())


def unloads(load: LoadData, decision: SheddingDecision) -> list[tuple[str, str]]:
    pairs = zip(decision.source.tolist(), decision.bundle.tolist(), strict=True)
    return [(load.brokers.ids[source], load.bundles.name(row)) for source, row in pairs]


def broker_answers(load: LoadData, decision: SheddingDecision) -> dict[str, str]:
    outcomes = decision.brokers
    return {load.brokers.ids[row]: outcomes.explain(place) for place, row in enumerate(outcomes.index.tolist())}


def bundle_codes(load: LoadData, decision: SheddingDecision) -> dict[str, str]:
    return {load.bundles.name(row): code for row, code in codes(decision.bundles).items()}


def broker_codes(load: LoadData, decision: SheddingDecision) -> dict[str, str]:
    return {load.brokers.ids[row]: code for row, code in codes(decision.brokers).items()}
