"""Compares the engine with the real Java classes: `engine_java.py [BROKERS BUNDLES]...`, one table per size.

Both sides decide on the same seeded cluster of `bench_engine.py`, in one thread, with their state in memory. Java: the
minimum of the runs within three seconds (at least two), after three seconds of warm-up. Ours: the minimum of the runs
within a second (at least seven), explanations included. Java's time depends on the number of source brokers; here half
the brokers are sources.
Preparation has a separate row: Java fills the leader's maps, we hash the names and compute the map order.
Memory is what one decision allocates (Java), or its peak in addition to the state (ours). The figures become rows of
docs/results/engine.tsv, for `make docs`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench_engine import BUNDLES_PER_NAMESPACE, NOW_MS, cluster, fastest_ms, peak_mib

from parity.java_classes import java_command, java_environment, sources_for
from pulsar_advisor.model.cluster.cluster_state import FIGURES, RESOURCES, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.shedding.registry import load as load_shedder
from pulsar_advisor.splitting.bundle_splitter_task import select
from pulsar_advisor.splitting.cluster_bundles import bundle_counts, figures_of, reported_bundles
from pulsar_advisor.splitting.limits import SplitLimits
from results import RESULTS, record, today

RELEASE = "4.0.8"
MODULAR = ("OverloadShedder", "ThresholdShedder", "UniformLoadShedder", "AvgShedder")
LIMIT_S = 1800
CONFIG = {
    "loadBalancerBrokerOverloadedThresholdPercentage": 60,
    "loadBalancerBundleUnloadMinThroughputThreshold": 0,
    "loadBalancerAvgShedderHitCountHighThreshold": 1,
    "loadBalancerAvgShedderHitCountLowThreshold": 1,
    "loadBalancerSheddingConditionHitCountThreshold": 0,
    "minUnloadMessage": 0,
    "minUnloadMessageThroughput": 0,
    "loadBalancerNamespaceBundleMaxMsgRate": 500,
}
"""Settings under which every strategy acts."""
SETTINGS = resolve_settings(RELEASE, what_if={key: str(value) for key, value in CONFIG.items()}).values

Figures = dict[str, tuple[float, float, int]]
"""Strategy -> milliseconds, MiB, bundles chosen."""


def _named(keys: Any, row: Any) -> dict[str, float]:
    return dict(zip(keys, row.tolist(), strict=True))


def vector(state: ClusterState) -> dict[str, Any]:
    """The cluster in the vector format, rows in order, including the contents of the Extensible manager's stores."""
    brokers, bundles = state.brokers, state.bundles
    names = [state.bundle_name(row) for row in range(len(bundles.owner))]
    records = [
        {
            **{name: [usage, 100.0] for name, usage in _named(RESOURCES, brokers.usage[row]).items()},
            **_named(FIGURES, brokers.traffic[row]),
            "bundles": [],
            "lastStats": {},
        }
        for row in range(len(brokers.ids))
    ]
    for row, name in enumerate(names):
        record: Any = records[bundles.owner[row]]
        record["bundles"].append(name)
        record["lastStats"][name] = {"topics": int(bundles.topics[row]), **_named(FIGURES, bundles.traffic[row])}
    load = load_shedder("TransferShedder").observe(state, SETTINGS, NOW_MS)
    return {
        "config": CONFIG,
        "bundlesPerNamespace": BUNDLES_PER_NAMESPACE,
        "brokers": dict(zip(brokers.ids, records, strict=True)),
        "bundles": {
            name: {
                "shortTerm": _named(FIGURES, bundles.short_term[row]),
                "longTerm": _named(FIGURES, bundles.long_term[row]),
            }
            for row, name in enumerate(names)
        },
        "extensible": {
            load.broker_ids[row]: {
                "load": float(load.load[row]),
                "throughput": float(load.throughput_bytes_per_s[row]),
                "throughputEma": float(load.throughput_ema_bytes_per_s[row]),
                "top": [
                    {"bundle": load.bundle_name(entry.bundle), "msgThroughputIn": entry.throughput_bytes_per_s}
                    for entry in load.top(row)
                ],
            }
            for row in load.stored.tolist()
        },
    }


def java_figures(state: ClusterState) -> Figures:
    """The Java classes' figures, measured in a separate JVM that ends with this call."""
    sources = [*sources_for(RELEASE), *sorted(Path(__file__).with_name("java").glob("*.java"))]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(vector(state), file)
        file.flush()
        command = [*java_command("TimeStrategies", RELEASE, sources, ("-Xms2g", "-Xmx4g")), file.name]
        done = subprocess.run(
            command, env=java_environment(), capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    if done.returncode != 0:
        raise RuntimeError(f"TimeStrategies ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["strategy"]: (line["ms"], line["mib"], line["chosen"]) for line in lines}


def our_figures(state: ClusterState) -> Figures:
    """Our engine's figures for the same decisions."""
    figures: Figures = {}
    for name in (*MODULAR, "TransferShedder"):
        shedder = load_shedder(name)
        observe = lambda shedder=shedder: shedder.observe(state, SETTINGS, NOW_MS)  # noqa: E731
        prepare_ms, view = fastest_ms(observe)
        figures.setdefault("preparation", (prepare_ms, peak_mib(observe), len(state.bundles.owner)))
        figures[name] = _measured(
            lambda shedder=shedder, view=view: shedder.decide(view, SETTINGS, shedder.Memory())[0],
            lambda decision: len(decision.bundle),
        )
    reported = figures_of(state, reported_bundles(state), state.bundles.long_term)
    limits, counts = SplitLimits.from_settings(SETTINGS, bandwidth_bits=32), bundle_counts(state, SETTINGS)

    def split() -> int:
        verdicts = select(reported, limits, counts)
        verdicts.outcomes(reported)
        return len(verdicts.chosen())

    figures["BundleSplitterTask"] = _measured(split, int)
    return figures


def _measured(decide: Callable[[], Any], count: Callable[[Any], int]) -> tuple[float, float, int]:
    least_ms, decision = fastest_ms(decide)
    return least_ms, peak_mib(decide), count(decision)


def table(brokers: int, bundles: int) -> None:
    """Measure both sides, one after the other, and print them side by side."""
    state = cluster(brokers, bundles)
    java, ours = java_figures(state), our_figures(state)
    print(f"\n{brokers:,} brokers × {bundles:,} bundles, Pulsar {RELEASE}")
    print(f"{'':<20}{'Java ms':>12}{'ours ms':>12}{'Java / ours':>13}{'Java MiB':>11}{'our MiB':>10}{'chosen':>10}")
    for name, (java_ms, java_mib, java_chosen) in java.items():
        our_ms, our_mib, our_chosen = ours[name]
        chosen = f"{our_chosen:,}" if our_chosen == java_chosen else f"{our_chosen:,} != {java_chosen:,}"
        times = f"{java_ms:>12.3f}{our_ms:>12.3f}{java_ms / our_ms:>13.1f}"
        print(f"{name:<20}{times}{java_mib:>11.2f}{our_mib:>10.2f}{chosen:>18}", flush=True)
        figures = {"Java ms": java_ms, "ours ms": our_ms, "Java / ours": java_ms / our_ms}
        row = {what: f"{figure:,.4g}" for what, figure in {**figures, "Java MiB": java_mib, "our MiB": our_mib}.items()}
        decision = f"{brokers:,} × {bundles:,}: {name}"
        record(RESULTS / "engine.tsv", [{"decision": decision, **row, "measured": today()}])


if __name__ == "__main__":
    sizes = [int(text) for text in sys.argv[1:]] or [100, 10_000, 1_000, 100_000]
    for start in range(0, len(sizes), 2):
        table(sizes[start], sizes[start + 1])
