"""Replays recorded decisions: what the product predicts from the snapshot before each, beside what the brokers did.

Ends by writing the recordings' rows of docs/results/decisions.tsv.

PYTHONPATH=tests python -m decisions.replay [RECORDING...]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from decisions.recording import RECORDINGS, Cycle, Recording, read_recording
from pulsar_advisor.model.cluster.cluster_state import ClusterState, rate_per_s
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.load.base_load import base_load, with_usage_of_rates
from pulsar_advisor.model.load.resource_usage import usage_ratios
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.proposals.fitness import fit_part
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.forecast import Outlook
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor.tables import judged
from pulsar_advisor.tables.earlier import comparable_before
from pulsar_advisor.tables.session import spark_session
from pulsar_advisor.tables.settings_inputs import settings_inputs
from pulsar_advisor.tables.state import cluster_state
from results import RESULTS, record, today
from snapshots import RawSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORY: Final = 10
"""How many earlier snapshots a prediction with history learns from."""
LEAST_HISTORY: Final = 3
"""Decisions with fewer cycles before them count as decisions without history only."""
SETTLED_MS: Final = 110_000
"""How long after a cycle a broker's figures are all of after it: two samples of a minute, less what a cycle takes."""
NEAR_RATIO: Final = 0.05
"""How near a predicted usage, or an average relative to the leader's, must be."""
STORED_SOON_MS: Final = 3_000
"""How long after a snapshot the leader's stored averages are still those that it had then."""
LEAST_RATE_PER_S: Final = 5.0
"""Averages below are left out: a sample of one message more would be far away."""


@dataclass(frozen=True)
class Verdict:
    """One cycle as it was predicted and as it was."""

    cycle: Cycle
    predicted: Mapping[str, frozenset[str]]
    """The brokers that each bundle could go to, by bundle."""
    destinations: Mapping[str, str | None]
    """Where each unloaded bundle went; None if the load was changed before a snapshot showed it."""
    acts_in_cycle: int | None

    @property
    def named(self) -> int:
        """How many of the unloaded bundles were predicted."""
        return len(self.predicted.keys() & self.destinations.keys())

    @property
    def exact(self) -> bool:
        """Whether exactly these bundles were predicted."""
        return self.predicted.keys() == self.destinations.keys()

    @property
    def inside(self) -> int:
        """How many of the predicted bundles went to one of the brokers predicted for them."""
        return sum(self.destinations.get(bundle) in brokers for bundle, brokers in self.predicted.items())

    @property
    def located(self) -> int:
        """How many of the predicted bundles went to a broker that is known."""
        return sum(self.destinations.get(bundle) is not None for bundle in self.predicted)


@dataclass(frozen=True)
class Replay:
    """A whole recording."""

    recording: Recording
    alone: tuple[Verdict, ...]
    """The decisions, each predicted from its snapshot only."""
    informed: tuple[Verdict, ...]
    """Those with enough cycles before them, predicted with the snapshots of these cycles."""
    quiet: tuple[Verdict, ...]
    """The cycles without a decision, predicted likewise."""
    usage_errors: tuple[float, ...]
    """Predicted minus actual usage ratio, after every decision for every broker whose usage settled."""
    average_errors: tuple[float, ...]
    """Relative error of bundles' short-term message rates, wherever the leader stored its own soon after a snapshot."""

    def row(self) -> tuple[str, ...]:
        """The recording's row of the table."""
        recording = self.recording
        both = (*self.alone, *self.informed)
        right = sum(not verdict.predicted for verdict in self.quiet)
        return (
            f"{recording.shedder} {recording.release} {recording.load_manager}",
            *_columns(self.alone),
            *_columns(self.informed),
            f"{right} of {len(self.quiet)}",
            f"{sum(verdict.inside for verdict in both)} of {sum(verdict.located for verdict in both)}",
            _near(self.usage_errors),
            _near(self.average_errors),
        )


HEAD: Final = (
    *("recording", "alone: bundles named", "alone: decisions exact"),
    *("with history: bundles named", "with history: decisions exact"),
    *("quiet cycles right", "destinations inside", "usage within 5 points", "averages within 5 %"),
)


def replay(recording: Recording, spark: SparkSession, folder: Path) -> Replay:
    """Normalize the recording's snapshots and predict every cycle."""
    together = Root(str(folder), "together")
    for snapshot in recording.snapshots.values():
        normalize(spark, snapshot.write(together))
    alone = []
    for number, cycle in enumerate(recording.decisions):
        root = together
        if cycle.before != min(recording.snapshots):  # the first one goes on from none there, too
            root = Root(str(folder), f"alone-{number}")
            normalize(spark, recording.snapshots[cycle.before].write(root))
        alone.append(_verdict(recording, cycle, root, history=0))
    later = recording.cycles[LEAST_HISTORY:]
    verdicts = [_verdict(recording, cycle, together, history=HISTORY) for cycle in later]
    return Replay(
        recording,
        tuple(alone),
        tuple(verdict for verdict in verdicts if verdict.cycle.unloads),
        tuple(_of_this_cycle(verdict) for verdict in verdicts if not verdict.cycle.unloads),
        tuple(error for cycle in recording.decisions for error in _usage_errors(recording, cycle, together)),
        tuple(
            error
            for one, following in pairwise(recording.snapshots)
            for error in _average_errors(recording, together.snapshot(one), following)
        ),
    )


def table(replays: Iterable[Replay]) -> str:
    """All recordings as a Markdown table."""
    rows = [HEAD, tuple("--" for _ in HEAD), *(one.row() for one in replays)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def misses(replays: Iterable[Replay]) -> Iterator[str]:
    """Every decision that was not predicted exactly: what was predicted, what the brokers did, what they said."""
    for one in replays:
        for how, verdicts in (("alone", one.alone), ("with history", one.informed), ("quiet", one.quiet)):
            for verdict in verdicts:
                if not verdict.exact:
                    yield f"{one.recording.shedder} {one.recording.release}, {how}, {verdict.cycle.before}:"
                    yield f"  predicted (in cycle {verdict.acts_in_cycle}): {', '.join(sorted(verdict.predicted))}"
                    yield f"  unloaded: {', '.join(sorted(verdict.destinations))}"
                    yield from (f"  {text}" for text in verdict.cycle.said)


def _columns(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    named, unloaded = sum(verdict.named for verdict in verdicts), sum(len(one.destinations) for one in verdicts)
    return f"{named} of {unloaded}", f"{sum(verdict.exact for verdict in verdicts)} of {len(verdicts)}"


def _near(errors: Sequence[float]) -> str:
    return f"{sum(abs(error) <= NEAR_RATIO for error in errors)} of {len(errors)}"


def _of_this_cycle(verdict: Verdict) -> Verdict:
    """The prediction for this very cycle: a decision predicted for a later one is none yet."""
    if verdict.acts_in_cycle == 1:
        return verdict
    return Verdict(verdict.cycle, {}, verdict.destinations, verdict.acts_in_cycle)


def _verdict(recording: Recording, cycle: Cycle, root: Root, history: int) -> Verdict:
    before = root.snapshot(cycle.before)
    state, settings = state_of(before), resolve_settings(*settings_inputs(before))
    earlier = [state_of(one) for one in islice(comparable_before(before), history)]
    situation = Situation.of_fit(state, settings, earlier[::-1])
    request = Request(*situation.configured, splits=False, view="published", history=history)
    ((_, proposal),) = propose(request, situation)
    if isinstance(proposal, AdvisorError):
        raise proposal
    predicted = {
        state.bundle_name(move.bundle): frozenset(state.brokers.ids[row] for row in move.possible)
        for move in proposal.moves
    }
    after = _owners(recording.snapshots[cycle.after]) if cycle.after else {}
    destinations = {unload.bundle: unload.destination or after.get(unload.bundle) for unload in cycle.unloads}
    return Verdict(cycle, predicted, destinations, proposal.acts_in_cycle)


def _usage_errors(recording: Recording, cycle: Cycle, root: Root) -> list[float]:
    """Predicted minus actual usage ratios after the unloads, as a plan with history predicts them.

    Of the brokers whose usage was recorded once it had settled: see `_settled`.
    """
    if cycle.after is None:
        return []
    before = cluster_state(root.snapshot(cycle.before), "fresh")
    earlier = [cluster_state(one, "fresh") for one in islice(comparable_before(root.snapshot(cycle.before)), HISTORY)]
    settings = settings_of(root.snapshot(cycle.before))
    owners = _owners(recording.snapshots[cycle.after])
    base = base_load(before, earlier[::-1])
    outlook = Outlook.of(before, base, with_usage_of_rates(before, earlier[::-1], base))
    rows = {before.bundle_name(row): row for row in range(len(before.bundles))}
    brokers = {broker: row for row, broker in enumerate(before.brokers.ids)}
    moves = [
        (rows[unload.bundle], brokers[unload.source], brokers[destination])
        for unload in cycle.unloads
        if (destination := owners.get(unload.bundle)) is not None
    ]
    outlook, _ = outlook.along(outlook, before.bundles, moves, settings)
    predicted = usage_ratios(outlook.likely, settings)
    errors = []
    for broker, row in brokers.items():
        after = _settled(recording, cycle, broker, root)
        if after is not None:
            actual = usage_ratios(after.brokers, settings)[after.brokers.ids.index(broker)]
            errors.append(float(predicted[row] - actual))
    return errors


def _average_errors(recording: Recording, snapshot: Snapshot, following: str) -> list[float]:
    """Relative errors of the averages in a snapshot's state, for bundles whose nodes the leader wrote soon after it."""
    ended_ms = recording.snapshots[snapshot.id].head["finished_at_ms"]
    stored = {
        line["bundle"]: line["document"]["shortTermData"]["msgRateIn"] + line["document"]["shortTermData"]["msgRateOut"]
        for line in recording.snapshots[following].lines["bundle_data"]
        if 0 < line["modifiedAt"] - ended_ms <= STORED_SOON_MS
    }
    if not stored:
        return []
    state = state_of(snapshot)
    rates = rate_per_s(state.bundles.short_term)
    return [
        rates[row] / rate - 1
        for row in np.flatnonzero(state.bundles.reported).tolist()
        if (rate := stored.get(state.bundle_name(row), 0.0)) >= LEAST_RATE_PER_S
    ]


def _settled(recording: Recording, cycle: Cycle, broker: str, root: Root) -> ClusterState | None:
    """The first state in which a broker's CPU and rates are both of after the cycle; None if it changed again before.

    Both are averages that are up to two minutes old. A broker changes when a bundle leaves or reaches it, and when the
    recording's load changes.
    """
    for later in recording.cycles[recording.cycles.index(cycle) :]:
        if later.after is None:
            return None
        owners = _owners(recording.snapshots[later.after])
        touched = {one for unload in later.unloads for one in (unload.source, owners.get(unload.bundle))}
        if later is not cycle and broker in touched:
            return None
        after = cluster_state(root.snapshot(later.after), "fresh")
        if after.brokers.report_updated_at_ms[after.brokers.ids.index(broker)] - cycle.at_ms >= SETTLED_MS:
            return after
    return None


def state_of(snapshot: Snapshot) -> ClusterState:
    """What the leader saw, as far as it is fit for use."""
    return fit_part(judged.state_of(snapshot, "published", {}))


def settings_of(snapshot: Snapshot) -> LoadBalancerSettings:
    """The settings of the snapshot's brokers."""
    return resolve_settings(*settings_inputs(snapshot)).values


def _owners(snapshot: RawSnapshot) -> dict[str, str]:
    return {line["bundle"]: line["broker"] for line in snapshot.lines["owned_bundles"] if line["pass"] == "end"}


def recordings(names: Sequence[str]) -> Iterator[tuple[str, Recording]]:
    """The recordings of these names, or all, each with its name."""
    for file in sorted(RECORDINGS.glob("*.json.zst")):
        name = file.name.removesuffix(".json.zst")
        if not names or name in names:
            yield name, read_recording(file)


def main(names: Sequence[str]) -> None:
    """Replay the recordings of these names, or all, print the misses and the table, and keep its rows."""
    spark = spark_session("local[2]", "replay")
    replays = []
    for name, recording in recordings(names):
        with tempfile.TemporaryDirectory() as folder:
            replays.append(replay(recording, spark, Path(folder)))
        print("\n".join(misses(replays[-1:])), flush=True)
        figures = dict(zip(HEAD, replays[-1].row(), strict=True))
        record(RESULTS / "decisions.tsv", [{**figures, "recording": name, "replayed": today()}])
    spark.stop()
    print(f"\n{table(replays)}")


if __name__ == "__main__":
    main(sys.argv[1:])
