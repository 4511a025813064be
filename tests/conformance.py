"""Rules that every strategy on offer keeps, whatever it does; and its fixtures, found by its name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.model.strategy.outcomes import Outcome, Outcomes
from states import WHOLE, BrokerRow, BundleRow, cluster_state

DATA = Path(__file__).parent / "data"


def outcomes_of(strategy: ModuleType) -> list[Outcome]:
    """All answers that a strategy's module names."""
    kinds = [kind for kind in vars(strategy).values() if isinstance(kind, type) and issubclass(kind, Outcome)]
    return [outcome for kind in kinds for outcome in kind]


def codes(outcomes: Outcomes) -> dict[int, str]:
    """What is answered about each broker or bundle (a row)."""
    return {int(row): outcomes.vocabulary[code].code for row, code in zip(outcomes.index, outcomes.code, strict=True)}


def fixture(name: str) -> list[dict[str, Any]]:
    """The cases of `tests/data/strategies/<name>.json`; none without such a file."""
    file = DATA / "strategies" / f"{name}.json"
    if not file.exists():
        return []
    cases: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cases"]
    return cases


def vectors() -> frozenset[str]:
    """Strategies that vectors of Pulsar's released classes are about."""
    files = ("shedders.json", "splits.json", "generated.json")
    cases = [case for file in files for case in json.loads((DATA / "vectors" / file).read_text(encoding="utf-8"))]
    return frozenset((case.get("strategy") or case["algorithm or task"]).removeprefix("ext.") for case in cases)


Bundle = float | Mapping[str, Any]


def state_of(brokers: Mapping[str, float], bundles: Mapping[str, Sequence[Bundle]], **row: Any) -> ClusterState:
    """Brokers by CPU percent; bundles by the points of it that they cause, or by the fields of a `BundleRow`.

    Each bundle has a namespace of its own, `t/<broker>-<place>`, and one topic unless said otherwise.
    """
    return cluster_state(
        [BrokerRow(f"{name}:8080", cpu=(cpu, 100.0), traffic=(cpu, 0.0, 0.0, 0.0)) for name, cpu in brokers.items()],
        [
            BundleRow(f"t/{name}-{place}", WHOLE, f"{name}:8080", **{"topics": 1, **_fields(bundle), **row})
            for name, own in bundles.items()
            for place, bundle in enumerate(own)
        ],
    )


def _fields(bundle: Bundle) -> Mapping[str, Any]:
    return bundle if isinstance(bundle, Mapping) else {"traffic": (bundle, 0.0, 0.0, 0.0)}


def moves_of(state: ClusterState, decision: SheddingDecision) -> list[list[str | int]]:
    """[broker, place of the bundle, and the destination where the shedder names one], in its order."""
    hosts = [broker.partition(":")[0] for broker in state.brokers.ids]
    places = [int(name.rpartition("-")[2]) for name in state.namespaces.names]
    return [
        [hosts[source], places[state.bundles.namespace[bundle]], *([hosts[to]] if to != NO_ROW else [])]
        for source, bundle, to in zip(
            decision.source.tolist(), decision.bundle.tolist(), decision.destination.tolist(), strict=True
        )
    ]
