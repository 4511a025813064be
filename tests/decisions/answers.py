"""What the product answers before each recorded cycle, as an operator gets it: validated, then recommended.

`decisions.replay` asks the strategies alone, which see every figure. Here the checks decide what they see.

PYTHONPATH=tests python -m decisions.answers [RECORDING...]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from decisions.recording import Cycle, Recording
from decisions.replay import recordings, settings_of
from pulsar_advisor.model.load.resource_usage import usage_ratios
from pulsar_advisor.planning.proposals.configured import CONFIGURED
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages import recommend
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.plans import read_plan
from pulsar_advisor.storage.root import PLANS, Root, Snapshot
from pulsar_advisor.tables.judged import state_of
from pulsar_advisor.tables.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Answer:
    """The answer before one cycle, about the cluster's own strategies."""

    cycle: Cycle
    sentence: str
    """What it begins with."""
    unloads: frozenset[str]
    """The bundles that its plan unloads."""
    judged_msg_rate_ratio: float
    """The share of the messages that could be judged."""
    busiest_ratio: float
    """The usage of the busiest broker as its leader is about to read it, whether it could be judged or not."""

    @property
    def above_limit(self) -> bool:
        """Whether a broker used more than all of a resource."""
        return self.busiest_ratio > 1

    @property
    def does_nothing(self) -> bool:
        """Whether it begins with the advice to leave everything as it is."""
        return self.sentence.startswith("Do nothing")

    @property
    def unloaded(self) -> frozenset[str]:
        """The bundles that the leader then unloaded."""
        return frozenset(unload.bundle for unload in self.cycle.unloads)

    @property
    def named(self) -> int:
        """How many of these are in the plan."""
        return len(self.unloads & self.unloaded)


def answers(recording: Recording, spark: SparkSession, folder: Path) -> list[Answer]:
    """What `recommend` says before each cycle, on what the leader sees, with the snapshots before it."""
    root = Root(str(folder), "recorded")
    for snapshot in sorted({cycle.before for cycle in recording.cycles}):
        recording.snapshots[snapshot].write(root)
        normalize(spark, root.snapshot(snapshot))
        validate(spark, root.snapshot(snapshot))
    return [_answer(spark, root, cycle) for cycle in recording.cycles]


def _answer(spark: SparkSession, root: Root, cycle: Cycle) -> Answer:
    request = Request(CONFIGURED, CONFIGURED, splits=False, view="published")
    document = recommend.run(lambda: spark, root.snapshot(cycle.before), request)
    [combination] = document.combinations
    return Answer(
        cycle,
        document.advice.sentence,
        _unloads(root.snapshot(cycle.before), combination.plan),
        document.coverage.judged_msg_rate_ratio,
        _busiest_ratio(root.snapshot(cycle.before)),
    )


def _unloads(snapshot: Snapshot, plan: str | None) -> frozenset[str]:
    """The bundles that a plan (its file, if there is one) unloads."""
    steps = () if plan is None else read_plan(str(snapshot.folder(PLANS) / plan)).steps
    return frozenset(step.bundle_name for step in steps if step.action == "unload")


def _busiest_ratio(snapshot: Snapshot) -> float:
    state = state_of(snapshot, "published", {})
    return float(usage_ratios(state.brokers, settings_of(snapshot)).max())


def named_ratio(found: Sequence[Answer]) -> float:
    """Of all bundles that the leader unloaded, the share that was named before."""
    return sum(answer.named for answer in found) / sum(len(answer.unloaded) for answer in found)


HEAD: Final = ("cycle", "busiest", "judged", "unloaded", "named", "in the plan only", "the answer begins")


def table(found: Iterable[Answer]) -> str:
    """The answers of one recording as a Markdown table."""
    rows = [HEAD, tuple("--" for _ in HEAD), *map(_row, found)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(answer: Answer) -> tuple[str, ...]:
    at = datetime.fromtimestamp(answer.cycle.at_ms / 1000, UTC)
    counts = (len(answer.unloaded), answer.named, len(answer.unloads - answer.unloaded))
    shares = (f"{ratio:.0%}" for ratio in (answer.busiest_ratio, answer.judged_msg_rate_ratio))
    return f"{at:%H:%M:%S}", *shares, *map(str, counts), answer.sentence


def main(names: Sequence[str]) -> None:
    """Print what is answered before the cycles of these recordings, or of all."""
    spark = spark_session("local[2]", "answers")
    for _, recording in recordings(names):
        with tempfile.TemporaryDirectory() as folder:
            found = answers(recording, spark, Path(folder))
        print(f"\n{recording.shedder} {recording.release} {recording.load_manager}\n{table(found)}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
