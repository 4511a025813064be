"""Time of the engine: `bench_engine.py [BROKERS BUNDLES]...`, one table per size.

Uses a seeded cluster with uneven brokers, and settings under which every shedder acts. Preparation is the work done
once per snapshot (hashing and sorting names); a decision includes the explanation of everything it examined. Times are
the minimum of several runs, in one thread. The last table is one run of every shedder with every placement strategy,
from the cluster state to proposals: preparation, decision, filters, a destination for every chosen bundle, and all
explanations.
"""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Brokers, Bundles, ClusterState, Namespaces, Topics
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.placement.registry import load as load_placement
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.shedding.registry import load as load_shedder

LEAST_RUNS, MOST_RUNS, PHASE_S = 7, 200, 1.0
CHOICES = 50
NOW_MS = 1_795_250_000_000
BUNDLES_PER_NAMESPACE = 64
RESOLVED = resolve_settings(
    "4.0.8",
    what_if={
        "loadBalancerBrokerOverloadedThresholdPercentage": "60",
        "loadBalancerBundleUnloadMinThroughputThreshold": "0",
        "loadBalancerAvgShedderHitCountHighThreshold": "1",
        "loadBalancerAvgShedderHitCountLowThreshold": "1",
        "loadBalancerSheddingConditionHitCountThreshold": "0",
        "minUnloadMessage": "0",
        "minUnloadMessageThroughput": "0",
    },
)
SETTINGS = RESOLVED.values


def cluster(brokers: int, bundles: int) -> ClusterState:
    """A seeded Modular cluster: CPU between 20 and 100 %, log-normal bundle traffic."""
    random = np.random.default_rng(1)
    owner = random.integers(0, brokers, bundles).astype(np.int32)
    traffic = random.lognormal(10, 1.5, (bundles, 4)) * (0.001, 0.001, 1, 1)
    totals = np.stack([np.bincount(owner, weights=column, minlength=brokers) for column in traffic.T], axis=1)
    usage = np.zeros((brokers, 5))
    usage[:, 0] = random.uniform(20, 100, brokers)
    number = np.arange(bundles)
    slot = number % BUNDLES_PER_NAMESPACE
    width = 2**32 // BUNDLES_PER_NAMESPACE
    namespaces = int(number[-1] // BUNDLES_PER_NAMESPACE) + 1
    yes, none = np.ones(bundles, dtype=bool), np.zeros(bundles, dtype=np.int64)
    up, zero = np.ones(brokers, dtype=bool), np.zeros(brokers, dtype=np.int64)
    manager = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
    return ClusterState(
        cluster="bench",
        cluster_name="bench",
        snapshot="20261121T083000Z",
        captured_at_ms=NOW_MS,
        view="published",
        pulsar_version="4.0.8",
        load_manager="modular",
        leader=NO_ROW,
        brokers=Brokers(
            ids=tuple(f"broker-{row:05d}.example.com:8080" for row in range(brokers)),
            usage=usage,
            limit=np.full((brokers, 5), 100.0),
            traffic=totals,
            topics=zero,
            bundles=np.bincount(owner, minlength=brokers),
            producers=zero,
            consumers=zero,
            report_updated_at_ms=np.full(brokers, NOW_MS),
            started_at_ms=zero,
            complete=up,
            doubtful=~up,
            available=up,
            persistent_topics_enabled=up,
            non_persistent_topics_enabled=up,
            versions=("4.0.8",) * brokers,
            load_manager_class_names=(manager,) * brokers,
        ),
        namespaces=Namespaces(tuple(f"tenant/ns-{row:06d}" for row in range(namespaces)), (None,) * namespaces),
        bundles=Bundles(
            namespace=(number // BUNDLES_PER_NAMESPACE).astype(np.int32),
            lower=slot * width,
            upper=np.minimum((slot + 1) * width, 0xFFFFFFFF),
            owner=owner,
            in_boundaries=yes,
            reported=yes,
            listed=yes,
            usable=yes,
            traffic=traffic,
            topics=none + 10,
            producers=none,
            consumers=none,
            cache_size_bytes=none,
            short_term=traffic,
            short_term_samples=none + 10,
            long_term=traffic,
            long_term_samples=none + 1000,
            averages_origin=np.zeros(bundles, dtype=np.uint8),
            folded_samples=none,
            unknown_samples=none,
            last_unloaded_at_ms=none,
        ),
        topics=Topics(
            names=np.empty(0, dtype=object),
            namespace=np.empty(0, dtype=np.int32),
            bundle=np.empty(0, dtype=np.int32),
            hash=np.empty(0, dtype=np.int64),
            loaded=np.empty(0, dtype=bool),
            traffic=np.empty((0, 4)),
        ),
        missing={},
        isolation_policies=(),
        failure_domains=(None,) * brokers,
    )


def fastest_ms(call: Callable[[], Any]) -> tuple[float, Any]:
    """Minimum in milliseconds of the runs within a second (at least seven), and the result of the last one."""
    least, result, phase = float("inf"), None, time.perf_counter()
    for run in range(MOST_RUNS):
        start = time.perf_counter()
        if run >= LEAST_RUNS and start - phase > PHASE_S:
            break
        result = call()
        least = min(least, time.perf_counter() - start)
    return least * 1000, result


def peak_mib(call: Callable[[], Any]) -> float:
    """Additional memory that a call needs."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def table(brokers: int, bundles: int) -> None:
    """Print the table for one size."""
    state = cluster(brokers, bundles)
    print(f"\n{brokers:,} brokers × {bundles:,} bundles")
    print(f"{'shedder':<42}{'prepare ms':>12}{'decide ms':>12}{'MiB':>8}{'chosen':>9}{'explained':>11}")
    for entry in SHEDDERS:
        shedder = load_shedder(entry.name)
        prepare_ms, view = fastest_ms(lambda shedder=shedder: shedder.observe(state, SETTINGS, NOW_MS))

        def decide(shedder: Any = shedder, view: Any = view) -> Any:
            return shedder.decide(view, SETTINGS, shedder.Memory())[0]

        decide_ms, decision = fastest_ms(decide)
        explained = len(decision.brokers) + len(decision.bundles)
        figures = f"{prepare_ms:>12.1f}{decide_ms:>12.2f}{peak_mib(decide):>8.1f}"
        bound = decision.figures.get("moves_bound")
        proven = "" if bound is None else f"  at least {bound:,} are proven necessary"
        print(f"{entry.name:<42}{figures}{len(decision.bundle):>9,}{explained:>11,}{proven}")
    print(f"{'placement':<42}{'prepare ms':>12}{'choice ms':>12}")
    everyone = np.arange(brokers, dtype=np.int32)
    for entry in PLACEMENTS:
        placement = load_placement(entry.name)
        prepare_ms, view = fastest_ms(lambda placement=placement: placement.observe(state, SETTINGS, NOW_MS))

        def place(placement: Any = placement, view: Any = view) -> None:
            memory = placement.Memory()
            for bundle in range(CHOICES):
                _, memory = placement.choose(view, everyone, bundle, SETTINGS, memory)

        print(f"{entry.name:<42}{prepare_ms:>12.1f}{fastest_ms(place)[0] / CHOICES:>12.3f}")
    print(f"{'shedder with every placement':<42}{'CPU s':>12}{'destinations':>14}")
    total_s = 0.0
    for entry in SHEDDERS:
        start_s = time.process_time()
        request = Request(shedder=entry.name, splits=False)
        proposals = [proposal for _, proposal in propose(request, Situation.of_fit(state, RESOLVED))]
        total_s += (took_s := time.process_time() - start_s)
        moves = sum(len(proposal.moves) for proposal in proposals if not isinstance(proposal, AdvisorError))
        print(f"{entry.name:<42}{took_s:>12.2f}{moves:>14,}")
    process_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'all':<42}{total_s:>12.2f}  the process took {process_mib:,.0f} MiB at most")


if __name__ == "__main__":
    sizes = [int(text) for text in sys.argv[1:]] or [100, 10_000, 1_000, 100_000]
    for start in range(0, len(sizes), 2):
        table(sizes[start], sizes[start + 1])
