"""Judges whether a snapshot's tables can be trusted: Great Expectations runs the suites on Spark."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame

from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.validation import Cell, CheckResult
from pulsar_advisor.model.configuration.resolved_settings import setting_value
from pulsar_advisor.model.plans.canonical_json import Json
from pulsar_advisor.quality.checks import Check, Expectation, checks_of, suites
from pulsar_advisor.quality.facts.facts import facts
from pulsar_advisor.tables.frames import Row, materialized
from pulsar_advisor.tables.session import jobs_named
from pulsar_advisor.tables.settings_inputs import SettingsInputs
from pulsar_advisor.tables.snapshot_frames import SnapshotFrames

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "brokers": ("broker",),
    "bundles": ("namespace", "bundle"),
    "capture": ("snapshot", "absent", "undeclared"),
    "namespaces": ("namespace",),
    "policies": ("name", "unusable"),
    "problems": ("surface", "path", "broker", "detail"),
    "settings": ("origin", "broker", "key"),
    "topics": ("namespace", "topic"),
}
"""The columns that identify a failing row of each table."""

_READ_AGAIN: Final = "topics"
"""The table with the most rows and the simplest facts: reading it once to count its rows and, if all of its checks
pass, once to judge them costs less than keeping the rows in memory.
"""

_AT_A_TIME: Final = 2
"""Tables judged at a time: while Spark plans the queries of one, on a single core, it can run those of another."""

_LONGEST: Final = ("bundles", "brokers", "topics", "settings")
"""The tables that take longest, in this order."""

_EXAMPLES: Final = 5

_CONFINABLE_ROWS: Final = 100_000
"""A check that would set aside more rows than this becomes critical."""

_NAMED_ROWS: Final = 10_000
"""A check that casts doubt on more rows than this doesn't name them: it may concern any step."""

_log = logging.getLogger(__name__)

_UNREADABLE: Final = re.compile(
    r"FAILED_READ_FILE.* reading file \S+/tables/(?P<table>\w+)/cluster[^/]+/snapshot(=|%3D)(?P<snapshot>[^/]+)/"
)
"""Spark's messages for a file whose footer is readable but whose rows are not."""

_REPORT_INTERVAL: Final = "loadBalancerReportUpdateMaxIntervalMinutes"
_REPORT_SLACK_MINUTES: Final = 1


def run_checks(
    tables: SnapshotFrames, before: SnapshotFrames | None, manifest: Manifest, settings: SettingsInputs
) -> tuple[CheckResult, ...]:
    """Run every check on a snapshot's tables, compared with those of the snapshot before it.

    Raises `StorageError` if rows of a table can't be read.
    """
    try:
        results = _results(facts(tables, before, manifest, settings), parameters_of(settings))
    except (Py4JJavaError, PySparkException) as error:
        _refuse_if_unreadable(tables, str(error))
        raise
    for result in results:
        _refuse_if_unreadable(tables, result.error or "")
    return tuple(results)


def _refuse_if_unreadable(tables: SnapshotFrames, message: str) -> None:
    unreadable = _UNREADABLE.search(message)
    if unreadable is not None:
        raise tables.unreadable(unreadable["snapshot"], unreadable["table"])


def parameters_of(settings: SettingsInputs) -> dict[str, int]:
    """The parameters of the suites: the maximum age of a load report, as brokers write one at least every interval."""
    interval = int(setting_value(_REPORT_INTERVAL, *settings))
    return {"oldest_report_minutes": max(interval, 0) + _REPORT_SLACK_MINUTES}


def _results(facts_of: Mapping[str, Callable[[], DataFrame]], parameters: Mapping[str, int]) -> list[CheckResult]:
    """The results in the order of the suites. The tables that take longest are judged first."""
    threads = ThreadPoolExecutor(_AT_A_TIME)
    try:
        order = [*_LONGEST, *(table for table in suites() if table not in _LONGEST)]
        judged = {table: threads.submit(_results_of, table, facts_of[table], parameters) for table in order}
        return [result for table in suites() for result in judged[table].result()]
    finally:
        threads.shutdown(cancel_futures=True)


def judged_rows(make_rows: Callable[[], DataFrame], table: str) -> DataFrame:
    """A table's rows, in memory if that pays: the columns that its suite uses, and those that identify a row.

    Raises `AnalysisException` if a column that a fact needs is missing from the table.
    """
    frame = make_rows()
    kwargs = [expectation["kwargs"] for expectation in suites()[table]]
    spoken_of = {*re.findall(r"\w+", json.dumps(kwargs)), *_KEYS[table]}
    rows = frame.select(*(column for column in frame.columns if column in spoken_of))
    with jobs_named(frame.sparkSession, f"read table {table}"):
        return rows if table == _READ_AGAIN else materialized(rows)


def _results_of(table: str, make_rows: Callable[[], DataFrame], parameters: Mapping[str, int]) -> list[CheckResult]:
    try:
        rows = judged_rows(make_rows, table)
    except AnalysisException as error:
        message = str(error).partition(";\n")[0]  # what follows is Spark's plan
        return [_result(check, _Outcome(success=False, error=message)) for check in checks_of(table)]
    results = run_suite(rows, table, suites()[table], parameters)
    _log.info("the checks of table %s are done", table)
    return results


def run_suite(
    rows: DataFrame, table: str, expectations: Sequence[Expectation], parameters: Mapping[str, int]
) -> list[CheckResult]:
    """Results of a table's expectations in their order.

    The first pass only asks which expectations hold, which Great Expectations computes in one aggregation. The failing
    rows of the others are then counted, and fetched if there are few enough to name.
    """
    from pulsar_advisor.quality.library import gx

    logging.getLogger("great_expectations").setLevel(logging.WARNING)  # it logs every temporary folder
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    source = context.data_sources.add_spark("tables", persist=False)
    source.get_execution_engine().spark = rows.sparkSession  # its queries look for the rows there
    batch = (
        source.add_dataframe_asset(table)
        .add_batch_definition_whole_dataframe("snapshot")
        .get_batch({"dataframe": rows})
    )

    def outcomes(codes: Iterable[str], result_format: Mapping[str, str | int | list[str]]) -> dict[str, _Outcome]:
        wanted = set(codes)
        # Great Expectations copies an expectation's metadata hundreds of times.
        chosen = [
            expectation | {"meta": {"code": expectation["meta"]["code"]}}
            for expectation in expectations
            if expectation["meta"]["code"] in wanted
        ]
        if not chosen:
            return {}
        result = batch.validate(
            gx.ExpectationSuite(name=table, expectations=chosen),
            result_format=result_format,
            expectation_parameters=dict(parameters),
        )
        # Results aren't in the order of the suite.
        return {one.expectation_config.meta["code"]: _Outcome.of(one) for one in result.results}

    codes = {expectation["meta"]["code"] for expectation in expectations}
    mine = [check for check in checks_of(table) if check.code in codes]
    judged = outcomes((check.code for check in mine), {"result_format": "BOOLEAN_ONLY"})
    failed = [code for code, outcome in judged.items() if outcome.error is None and not outcome.success]
    counted = outcomes(failed, {"result_format": "BASIC", "partial_unexpected_count": 0})
    detailed = outcomes(
        (code for code in failed if counted[code].failed_rows <= _CONFINABLE_ROWS),
        {"result_format": "COMPLETE", "unexpected_index_column_names": list(_KEYS[table])},
    )
    return [
        _result(
            check,
            counted.get(check.code, judged[check.code]),
            detailed[check.code].rows if check.code in detailed else (),
        )
        for check in mine
    ]


@dataclass(frozen=True)
class _Outcome:
    """What Great Expectations found about an expectation, as far as the pass asked."""

    success: bool
    failed_rows: int = 0
    """Number of rows that fail a row-wise expectation or a query; 1 for an assertion about the table as a whole."""
    rows: tuple[Row, ...] = ()
    """Every failing row: the columns that identify it, and the value."""
    error: str | None = None
    """Why it could not be evaluated."""

    @classmethod
    def of(cls, found: ExpectationValidationResult) -> Self:
        """The outcome in a returned result."""
        result = found.result or {}
        rows = result.get("unexpected_index_list") or result.get("details", {}).get("unexpected_rows") or []
        return cls(
            success=bool(found.success),
            failed_rows=_failed_rows(found) if not found.success else 0,
            rows=tuple(sorted((dict(row) for row in rows), key=str)),
            error=_error(found.exception_info or {}),
        )


def _failed_rows(found: ExpectationValidationResult) -> int:
    result = found.result or {}
    if "unexpected_count" in result:
        return int(result["unexpected_count"])
    is_query = found.expectation_config is not None and found.expectation_config.type == "unexpected_rows_expectation"
    return int(result.get("observed_value", 0)) if is_query else 1


def _error(information: Json) -> str | None:
    """The message. The details are flat, or nested by metric if one raised an error."""
    nested = [information, *(value for value in information.values() if isinstance(value, dict))]
    messages = [one.get("exception_message") or "no message" for one in nested if one.get("raised_exception")]
    return " ".join(str(messages[0]).split())[:500] if messages else None


def _result(check: Check, outcome: _Outcome, rows: Sequence[Row] = ()) -> CheckResult:
    error, failed_rows = outcome.error, outcome.failed_rows
    confines = check.effect == "confine" and failed_rows > 0
    # Rows that can't all be named can't be set aside.
    stops = error is not None or (confines and len(rows) != failed_rows)
    return CheckResult(
        check=check.name,
        severity="critical" if stops else check.severity,
        scope=check.scope,
        effect="stop" if stops else check.effect,
        about=check.about,
        success=outcome.success,
        title=check.title,
        reason=check.reason,
        action=check.action,
        failed_rows=failed_rows,
        examples=tuple(_as_json(row) for row in rows[:_EXAMPLES]),
        excluded=tuple(sorted({str(row[check.scope]) for row in rows})) if confines else (),
        concerned=_concerned(check, rows, failed_rows),
        error=error,
    )


def _concerned(check: Check, rows: Sequence[Row], failed_rows: int) -> tuple[str, ...] | None:
    """The names that a failed check casts doubt on; None if there are too many to list."""
    if check.effect != "doubt" or check.scope == "cluster":
        return ()
    return tuple(sorted({str(row[check.scope]) for row in rows})) if len(rows) == failed_rows <= _NAMED_ROWS else None


def _as_json(row: Row) -> dict[str, Cell | list[Cell]]:
    """A row, with numbers that JSON lacks as text."""

    def cell(value: Cell) -> Cell:
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value

    return {
        column: cell(value) if isinstance(value, Cell) else [cell(part) for part in value]
        for column, value in row.items()
    }
