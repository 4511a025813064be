"""What the product answers before each recorded decision, as an operator gets it: validated, then recommended.

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
from decisions.replay import recordings
from pulsar_advisor.planning.configured import CONFIGURED
from pulsar_advisor.planning.request import Request
from pulsar_advisor.quality.validate import validate
from pulsar_advisor.stages import recommend
from pulsar_advisor.storage.plans import PLANS, read_plan
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.normalize import normalize
from pulsar_advisor.tables.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Answer:
    """The answer before one decision, about the cluster's own strategies."""

    cycle: Cycle
    sentence: str
    """What it begins with."""
    unloads: frozenset[str]
    """The bundles that its plan unloads."""
    judged_msg_rate_ratio: float
    """The share of the messages that could be judged."""

    @property
    def unloaded(self) -> frozenset[str]:
        """The bundles that the leader then unloaded."""
        return frozenset(unload.bundle for unload in self.cycle.unloads)

    @property
    def named(self) -> int:
        """How many of these are in the plan."""
        return len(self.unloads & self.unloaded)


def answers(recording: Recording, spark: SparkSession, folder: Path) -> list[Answer]:
    """What `recommend` says before each decision, on what the leader sees, with the snapshots before it."""
    root = Root(str(folder), "recorded")
    for snapshot in recording.snapshots.values():
        validate(spark, root, _normalized(spark, root, snapshot.write(root)))
    return [_answer(spark, root, cycle) for cycle in recording.decisions]


def _normalized(spark: SparkSession, root: Root, snapshot: str) -> str:
    normalize(spark, root, snapshot)
    return snapshot


def _answer(spark: SparkSession, root: Root, cycle: Cycle) -> Answer:
    request = Request(CONFIGURED, CONFIGURED, splits=False, view="published")
    document = recommend.run(lambda: spark, root, cycle.before, request)
    [combination] = document["combinations"]
    plan = read_plan(str(root.folder(PLANS, cycle.before) / combination["plan"]))
    return Answer(
        cycle,
        document["advice"]["sentence"],
        frozenset(f"{step.namespace}/{step.bundle}" for step in plan.steps if step.action == "unload"),
        document["coverage"]["judged_msg_rate_ratio"],
    )


HEAD: Final = ("cycle", "judged", "unloaded", "named", "in the plan only", "the answer begins")


def table(found: Iterable[Answer]) -> str:
    """The answers of one recording as a Markdown table."""
    rows = [HEAD, tuple("--" for _ in HEAD), *map(_row, found)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(answer: Answer) -> tuple[str, ...]:
    at = datetime.fromtimestamp(answer.cycle.at_ms / 1000, UTC)
    counts = (len(answer.unloaded), answer.named, len(answer.unloads - answer.unloaded))
    return f"{at:%H:%M:%S}", f"{answer.judged_msg_rate_ratio:.0%}", *map(str, counts), answer.sentence


def main(names: Sequence[str]) -> None:
    """Print what is answered before the decisions of these recordings, or of all."""
    spark = spark_session("local[2]", "answers")
    for recording in recordings(names):
        with tempfile.TemporaryDirectory() as folder:
            found = answers(recording, spark, Path(folder))
        print(f"\n{recording.shedder} {recording.release} {recording.load_manager}\n{table(found)}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
