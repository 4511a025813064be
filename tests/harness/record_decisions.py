"""Records what the brokers of a live cluster decide by themselves: every shedding cycle, and the snapshot before it.

A capture is taken every few seconds while the cluster balances itself under a load that changes every few cycles. The
last capture before each cycle is kept with what the leader then logged. A crowded cluster, with all load on one broker
above its limit, is recorded in its first minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from decisions.recording import Cycle, Recording, raw_snapshot
from harness.balancing_log import CYCLE_S, LoggedCycle, logged_cycles
from harness.capturing import take_snapshot
from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME, LoadManager
from harness.errors import HarnessError
from harness.load import SHIFT_SIGNAL, running_generator
from harness.skew import wait_for_figures
from harness.workload import DEFAULT_SEED, WORKLOADS
from pulsar_advisor.storage.root import Root

DECISIONS: Final = 5
"""How many decisions to record, each with at least `HISTORY` cycles before it."""
HISTORY: Final = 3
CYCLES_OF_A_LOAD: Final = 4
"""The load changes at this interval."""
DECISIONS_ON_5: Final = 2
MOST_CYCLES: Final = 24
RESTLESS_DECISIONS: Final = 10
CROWDED_CYCLES: Final = 3
"""Of a crowded cluster: fewer than those after which the load changes."""
CAPTURE_EVERY_S: Final = 4.0
LISTEN_S: Final = 20
"""How long a capture gives Extensible brokers to publish what their leader sees."""
LARGEST_BYTES: Final = 300_000

_GRACE_PERIOD: Final = "loadBalancerSheddingGracePeriodMinutes"
_EVERYWHERE: Final = {
    _GRACE_PERIOD: "3",
    "loadBalancerSheddingIntervalMinutes": "1",
}
_SMALL_UNLOADS: Final = {"minUnloadMessage": "10", "minUnloadMessageThroughput": "1000"}


@dataclass(frozen=True)
class Scenario:
    """A cluster that balances itself: `settings` are those that make its shedder act on so small a load, and soon."""

    release: str
    load_manager: LoadManager
    shedder: str
    settings: Mapping[str, str] = field(default_factory=dict)
    workload: str = "skewed"
    variant: str = ""
    """What sets it apart from the others of its shedder; empty for the first of them."""
    decisions: int = DECISIONS
    most_cycles: int = MOST_CYCLES

    @property
    def name(self) -> str:
        """The name of its recording."""
        parts = (self.shedder, self.release, self.load_manager, self.variant)
        return "-".join(part for part in parts if part)

    @property
    def crowded(self) -> Scenario:
        """With all load on one broker in the beginning, which the first cycles have to mend."""
        settings = {**self.settings, _GRACE_PERIOD: "2"}
        return replace(
            self, settings=settings, workload="crowded", variant="crowded", decisions=1, most_cycles=CROWDED_CYCLES
        )

    @property
    def restless(self) -> Scenario:
        """A `TransferShedder` that nothing keeps from transferring bundles every minute."""
        settings = {
            **self.settings,
            "loadBalancerBrokerLoadTargetStd": "0.05",
            "loadBalanceSheddingDelayInSeconds": "0",
        }
        return replace(self, settings=settings, variant="restless", decisions=RESTLESS_DECISIONS)


def _modular(shedder: str, **settings: str) -> Scenario:
    implementation = f"org.apache.pulsar.broker.loadbalance.impl.{shedder}"
    return Scenario("4.0.8", "modular", shedder, {"loadBalancerLoadSheddingStrategy": implementation, **settings})


def _on_5(scenario: Scenario) -> Scenario:
    """With 5.0.1's defaults for all that the scenario doesn't set, also for the number of a namespace's bundles."""
    return replace(scenario, release="5.0.1", workload="divided", decisions=DECISIONS_ON_5)


def _transfer(release: str) -> Scenario:
    return Scenario(
        release,
        "extensible",
        "TransferShedder",
        {
            "loadBalancerBrokerLoadTargetStd": "0.1",
            "loadBalancerSheddingConditionHitCountThreshold": "0",
            "loadBalanceSheddingDelayInSeconds": "30",
            # Brokers publish almost every change: a capture has to wait until each of them has published something.
            "loadBalancerReportUpdateThresholdPercentage": "1",
        },
    )


_THRESHOLD: Final = _modular("ThresholdShedder", loadBalancerHistoryResourcePercentage="0.5")
_UNIFORM: Final = _modular("UniformLoadShedder", **_SMALL_UNLOADS)
_AVG: Final = _modular(
    "AvgShedder",
    loadBalancerLoadPlacementStrategy="org.apache.pulsar.broker.loadbalance.impl.AvgShedder",
    loadBalancerAvgShedderLowThreshold="8",
    loadBalancerAvgShedderHitCountLowThreshold="2",
    loadBalancerAvgShedderHitCountHighThreshold="1",
    maxUnloadPercentage="0.5",
    **_SMALL_UNLOADS,
)

_DEFAULT_OF_5: Final = Scenario("5.0.1", "modular", "AvgShedder", _SMALL_UNLOADS)
"""AvgShedder sheds and places there unless a setting says otherwise."""
_IMPATIENT: Final = {
    "loadBalancerAvgShedderHitCountLowThreshold": "2",
    "loadBalancerAvgShedderHitCountHighThreshold": "1",
}

RESTLESS: Final = _transfer("4.0.8").restless
"""The hardest leader to name in advance: whatever it transfers changes what it decides a minute later."""

CROWDED: Final = tuple(
    scenario.crowded
    for scenario in (
        *(_THRESHOLD, _modular("OverloadShedder"), _UNIFORM, _AVG, _transfer("4.0.8")),
        _DEFAULT_OF_5,  # with the patience that it has by default: it acts in the second cycle
    )
)
"""Each shedder of the Modular and the Extensible manager, with all load on one broker."""

SCENARIOS: Final = {
    scenario.name: scenario
    for scenario in (
        _THRESHOLD,
        _modular("OverloadShedder", loadBalancerBrokerOverloadedThresholdPercentage="60"),
        _UNIFORM,
        _AVG,
        Scenario(
            "4.0.8",
            "simple",
            "SimpleLoadManagerImpl",
            {
                # From the start: cycles with shedding off make the manager remember bundles as if it had unloaded them.
                "loadBalancerSheddingEnabled": "true",
                "loadBalancerBrokerOverloadedThresholdPercentage": "50",
                "loadBalancerBrokerComfortLoadLevelPercentage": "48",
            },
        ),
        _transfer("4.0.8"),
        _transfer("4.2.4"),
        RESTLESS,
        *CROWDED,
        _on_5(replace(_DEFAULT_OF_5, settings={**_SMALL_UNLOADS, **_IMPATIENT})),
        _on_5(_THRESHOLD),
        _on_5(_transfer("5.0.1")),
    )
}


class Capture(NamedTuple):
    """One capture of the series, most of which are not kept."""

    snapshot: str
    started_at_ms: int
    finished_at_ms: int


def record_decisions(scenario: Scenario, folder: Path) -> Path:
    """Run the scenario until it has its decisions, and write the recording.

    Raises:
        HarnessError: the brokers decided too little, or the recording became too large.
    """
    options = ClusterOptions(
        release=scenario.release, load_manager=scenario.load_manager, settings={**_EVERYWHERE, **scenario.settings}
    )
    with (
        LiveCluster(options) as cluster,
        running_generator(cluster, scenario.workload) as generator,
        tempfile.TemporaryDirectory() as captured,
    ):
        if not cluster.has_cpu_skew:
            raise HarnessError("This machine doesn't permit mount namespaces: all brokers would be equally hot.")
        placed = time.monotonic()
        wait_for_figures(cluster.admin, WORKLOADS[scenario.workload](DEFAULT_SEED))
        # A snapshot shows no difference between bundles that were placed by hand and those that the leader unloaded.
        time.sleep(max(0.0, placed + int(options.settings[_GRACE_PERIOD]) * 60 - time.monotonic()))
        begun_ms = _now_ms()
        cluster.admin.write("POST", "/brokers/configuration/loadBalancerSheddingEnabled/true")
        root = Root(captured, CLUSTER_NAME)
        captures, shifts = _watch(scenario, cluster, generator, root, begun_ms)
        logged = logged_cycles(_logs(cluster), begun_ms)
        cycles = with_captures(logged, captures, shifts)
        kept = sorted({name for cycle in cycles for name in (cycle.before, cycle.after) if name is not None})
        recording = Recording(
            release=scenario.release,
            load_manager=scenario.load_manager,
            shedder=scenario.shedder,
            settings=options.settings,
            cycles=cycles,
            snapshots={name: raw_snapshot(root.snapshot(name)) for name in kept},
        )
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{scenario.name}.json.zst"
    recording.write(file)
    size = file.stat().st_size
    print(f"{file}: {len(cycles)} cycles, {len(recording.decisions)} decisions, {size} bytes", file=sys.stderr)
    if len(recording.decisions) < scenario.decisions or size > LARGEST_BYTES:
        raise HarnessError(
            f"{file} has too few decisions or is too large; wanted are {scenario.decisions}, {LARGEST_BYTES}."
        )
    return file


def with_captures(
    logged: Sequence[LoggedCycle], captures: Sequence[Capture], shifts_ms: Sequence[int]
) -> tuple[Cycle, ...]:
    """The cycles that have a capture before them, with the last one before and the last one before the next cycle."""
    ends_ms = [cycle.at_ms for cycle in logged[1:]] + [logged[-1].at_ms + CYCLE_S * 1000] if logged else []
    cycles = []
    for cycle, end_ms in zip(logged, ends_ms, strict=True):
        before = [capture.snapshot for capture in captures if capture.finished_at_ms < cycle.at_ms]
        changed = any(cycle.at_ms < shift_ms < end_ms for shift_ms in shifts_ms)
        after = [
            capture.snapshot
            for capture in captures
            if cycle.at_ms < capture.started_at_ms <= capture.finished_at_ms < end_ms
        ]
        if before:
            last = after[-1] if after and not changed else None
            cycles.append(Cycle(cycle.at_ms, before[-1], last, cycle.unloads, cycle.said))
    return tuple(cycles)


def _watch(
    scenario: Scenario, cluster: LiveCluster, generator: subprocess.Popen[bytes], root: Root, begun_ms: int
) -> tuple[list[Capture], list[int]]:
    """Capture until there are enough decisions; the captures, and when the load was changed."""
    captures: list[Capture] = []
    shifts_ms: list[int] = []
    while True:
        due = time.monotonic() + CAPTURE_EVERY_S
        started_at_ms = _now_ms()
        captures.append(Capture(take_snapshot(cluster, root, LISTEN_S).id, started_at_ms, _now_ms()))
        cycles = logged_cycles(_logs(cluster), begun_ms)
        if _enough(scenario, cycles) or cycles_passed(cycles, _now_ms()) > scenario.most_cycles:
            return captures, shifts_ms
        if cycles_passed(cycles, _now_ms()) >= (len(shifts_ms) + 1) * CYCLES_OF_A_LOAD:
            generator.send_signal(SHIFT_SIGNAL)
            shifts_ms.append(_now_ms())
        time.sleep(max(0.0, due - time.monotonic()))


def cycles_passed(cycles: Sequence[LoggedCycle], now_ms: int) -> int:
    """How many there were: those in the log, and those since in which the shedder found nothing and said nothing."""
    return len(cycles) + (now_ms - cycles[-1].at_ms) // (CYCLE_S * 1000) if cycles else 0


def _enough(scenario: Scenario, cycles: Sequence[LoggedCycle]) -> bool:
    """Whether there are enough decisions, each with its history and a next cycle."""
    return sum(bool(cycle.unloads) for cycle in cycles[HISTORY:-1]) >= scenario.decisions


def _logs(cluster: LiveCluster) -> list[Path]:
    return [cluster.directory / f"{broker.name}.log" for broker in cluster.brokers]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
