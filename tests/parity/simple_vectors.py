"""Run vectors of the Simple manager: ranking, placement, shedding, and which bundles its brokers split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from parity.modular_vectors import Answer, moments
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.simple_load import simple_load, simple_reports
from pulsar_advisor.placement import simple_load_manager_impl as placement
from pulsar_advisor.placement.filters import fewest_bundles
from pulsar_advisor.shedding import simple_load_manager_impl as shedder
from pulsar_advisor.splitting import simple_load_manager_impl as splitter
from pulsar_advisor.splitting.cluster_bundles import figures_of
from pulsar_advisor.splitting.limits import SplitLimits
from states import BrokerRow, BundleRow, cluster_state
from vector_load import Json, figures, resources, settings_of

LARGEST_LONG = 2**63 - 1


def state_of(case: Json, unowned: str | None = None) -> ClusterState:
    """The brokers of a case with the bundles of their reports, and possibly a bundle that no report has."""
    stats: dict[str, Json] = {}
    owners: dict[str, str | None] = {}
    for broker, record in case["brokers"].items():
        stats |= record.get("lastStats", {})
        owners |= dict.fromkeys(record.get("lastStats", {}), broker)
    if unowned is not None:
        owners.setdefault(unowned, None)
    rows = [BundleRow(*name.rpartition("/")[::2], owner) for name, owner in owners.items()]
    state = cluster_state([BrokerRow(broker) for broker in case["brokers"]], rows, load_manager="simple")
    usage, limit = resources([case["brokers"][broker] for broker in state.brokers.ids])
    names = [state.bundle_name(row) for row in range(len(rows))]
    records = [stats.get(name, {}) for name in names]
    now_ms, unloaded = state.captured_at_ms, case.get("recentlyUnloaded", {})
    return replace(
        state,
        brokers=replace(state.brokers, usage=usage, limit=limit),
        bundles=replace(
            state.bundles,
            reported=np.array([name in stats for name in names], dtype=np.bool_),
            traffic=figures(records),
            topics=_counts(records, "topics"),
            producers=_counts(records, "producerCount"),
            consumers=_counts(records, "consumerCount"),
            last_unloaded_at_ms=np.array([now_ms if name in unloaded else 0 for name in names], dtype=np.int64),
        ),
    )


def _counts(records: list[Json], key: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([record.get(key, 0) for record in records], dtype=np.int64)


def _ranks(ranked: placement.RankedLoad, settings: LoadBalancerSettings) -> dict[str, int]:
    ranks = placement.final_rank(ranked.ranking, settings.load_balancer_placement_strategy)
    return dict(zip(ranked.load.broker_ids, (min(int(rank), LARGEST_LONG) for rank in ranks), strict=True))


def rank(case: Json, release: str) -> list[Answer]:
    """Both factors, and how every broker is ranked."""
    state, settings = state_of(case), settings_of(case["config"], release)
    load = simple_load(state, settings, state.captured_at_ms)
    ranked = placement.observe(state, settings, state.captured_at_ms)
    ranks = _ranks(ranked, settings)
    return [
        {
            "cpuFactor": load.cpu_factor,
            "memoryFactor": load.memory_factor,
            "brokers": {
                broker: {
                    "load": float(ranked.ranking.load_percent[row]),
                    "rate": float(ranked.ranking.rate_per_s[row]),
                    "capacity": int(ranked.ranking.capacity[row]),
                    "rank": ranks[broker],
                }
                for row, broker in enumerate(load.broker_ids)
            },
        }
    ]


def place(case: Json, release: str) -> list[Answer]:
    """The candidates for a bundle with their ranks, and the brokers among which Pulsar draws."""
    state, settings = state_of(case, case["bundle"]), settings_of(case["config"], release)
    row = next(row for row in range(len(state.bundles)) if state.bundle_name(row) == case["bundle"])
    of_namespace = (state.bundles.namespace == state.bundles.namespace[row]) & state.bundles.reported
    owned = np.bincount(state.bundles.owner[of_namespace], minlength=len(state.brokers))
    kept, _ = fewest_bundles(state.brokers.available, owned)
    candidates = np.flatnonzero(kept).astype(np.int32)
    ranked = placement.observe(state, settings, state.captured_at_ms)
    memory = placement.Memory(case.get("cursor", 0))
    decision, memory = placement.choose(ranked, candidates, row, settings, memory)
    ranks = _ranks(ranked, settings)
    return [
        {
            "candidates": {state.brokers.ids[broker]: ranks[state.brokers.ids[broker]] for broker in candidates},
            "eligible": sorted(state.brokers.ids[broker] for broker in decision.eligible),
            "cursor": memory.cursor,
        }
    ]


def shed(case: Json, release: str) -> list[Answer]:
    """What is unloaded cycle after cycle; the manager leaves alone what it has unloaded."""
    unloaded: dict[str, Any] = {}
    answers = []
    for moment in moments(case):
        unloaded |= moment.get("recentlyUnloaded", {})
        state = state_of({**moment, "recentlyUnloaded": unloaded})
        settings = settings_of(moment["config"], release)
        load = shedder.observe(state, settings, state.captured_at_ms)
        decision, _ = shedder.decide(load, settings, shedder.Memory())
        moves = zip(decision.source.tolist(), decision.bundle.tolist(), strict=True)
        unload = {state.brokers.ids[source]: [state.bundle_name(bundle)] for source, bundle in moves}
        unloaded |= {bundle: 1 for bundles in unload.values() for bundle in bundles}
        answers.append({"unload": unload})
    return answers


def split(case: Json, release: str) -> list[Answer]:
    """The bundles that each broker has split, in its order."""
    state, settings = state_of(case), settings_of(case["config"], release)
    reports = simple_reports(state, settings)
    broker = state.bundles.owner[reports.rows]
    counts: Mapping[str, int] = case.get("bundleCounts", {})
    verdicts = splitter.select(
        figures_of(state, reports.rows, state.bundles.traffic),
        SplitLimits.from_settings(settings, bandwidth_bits=64),
        np.array([counts.get(name, 0) for name in state.namespaces.names], dtype=np.int64),
        broker,
    )
    chosen = splitter.in_order(verdicts.chosen(), broker, reports.hashes)
    names = {row: (state.bundle_name(reports.rows[row]), state.brokers.ids[broker[row]]) for row in chosen.tolist()}
    in_reports = {owner: number for number, owner in enumerate(case["brokers"])}
    return [{"selected": dict(sorted(names.values(), key=lambda pair: in_reports[pair[1]]))}]


RUNNERS = {
    "SimpleLoadManagerImpl.doLoadRanking": rank,
    "SimpleLoadManagerImpl.getLeastLoaded": place,
    "SimpleLoadManagerImpl.doLoadShedding": shed,
    "SimpleLoadManagerImpl.doNamespaceBundleSplit": split,
}
"""What runs a case, by its strategy."""
