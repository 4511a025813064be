"""Folds the days of many clusters on Spark: each day is one task, which reads and writes files itself.

Spark only spreads and repeats these tasks: no row of a table passes through it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypedDict

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.stages.fold import days_before
from pulsar_advisor.stages.fold import run as fold
from pulsar_advisor.storage.files import refused_by_storage
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.fan_out import fan_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FoldTask(TypedDict):
    """What an executor needs to know to fold one day."""

    root: str
    cluster: str
    day: str
    address: str | None


@dataclass(frozen=True)
class Folded:
    """The result for one day."""

    cluster: str
    line: str
    """The day's line in a list, or why it couldn't be folded."""
    exit_code: int = 0


def run(spark: SparkSession, roots: Iterable[Root], today: str, address: str | None = None) -> list[Folded]:
    """Fold every day before today (`YYYYMMDD`, UTC) of some clusters; a failure doesn't stop the others.

    `address` is the ledger's, as for `fold`; the executors must be able to reach it.
    """
    tasks = {
        f"{root.cluster} {day}": FoldTask(root=root.url, cluster=root.cluster, day=day, address=address)
        for root in roots
        for day in days_before(root, today)
    }
    answers = fan_out(spark, tasks, fold_task, most=len(tasks))  # a task each, however small the snapshots
    return [Folded(**json.loads(answer)) for answer in answers.values()]


def fold_task(task: FoldTask) -> str:
    """Fold one day where its task runs; returns a `Folded` as JSON. Spark repeats only what dies with its executor, or
    is slow: such a copy waits for the task that holds the day, or its refusal would count as the day's result.
    """
    from pulsar_advisor.tables.job import once_free  # loads Spark

    cluster = task["cluster"]
    try:
        day = once_free("fold", lambda: fold(Root(task["root"], cluster).day(task["day"]), task["address"]))
        folded = Folded(cluster, day.line)
    except AdvisorError as error:
        folded = Folded(cluster, f"{task['day']} can't be folded: {error}", error.exit_code)
    except OSError as error:
        folded = Folded(cluster, f"{task['day']} can't be folded: {refused_by_storage(error)}", AdvisorError.exit_code)
    return json.dumps(asdict(folded))
