"""Spark jobs that take the options of a verb: read as the command line reads them, before Spark starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cyclopts import App, CycloptsError
from pyspark.sql import SparkSession

from pulsar_advisor.cli.usage import explained
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.job import exit_code_of, run_job


def run_requested(
    name: str, app: App, stage: Callable[[Callable[[], SparkSession], Snapshot, Any], Any], words: Sequence[str]
) -> int:
    """As `run_job`, for a stage that takes a request, which `app` makes of its own options among the words."""
    read: list[tuple[Any, list[str]]] = []

    def request() -> None:
        try:
            command, bound, others, _ = app.parse_known_args(words)
        except CycloptsError as error:
            error.verbose = False  # else it names functions and repeats every word
            raise UsageError(explained(error)) from error
        read.append((command(*bound.args, **bound.kwargs), others))

    if code := exit_code_of(name, request):
        return code
    ((requested, others),) = read
    return run_job(name, lambda spark, snapshot: stage(lambda: spark, snapshot, requested), others)
