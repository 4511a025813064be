"""Whether a snapshot's tables can be trusted: the suites, run by Great Expectations on Spark."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame

from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.validation import CheckResult
from pulsar_advisor.model.configuration.settings import setting_value
from pulsar_advisor.quality.checks import Check, checks, suites
from pulsar_advisor.quality.facts.facts import facts
from pulsar_advisor.tables.frames import materialized
from pulsar_advisor.tables.snapshot_frames import SnapshotFrames
from pulsar_advisor.tables.state import SettingsInputs

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
"""A check that casts doubt on more rows than this names none of them: it may concern any step."""

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
        raise tables.damaged(unreadable["snapshot"], unreadable["table"], "its rows can't be read")


def parameters_of(settings: SettingsInputs) -> dict[str, int]:
    """The parameters of the suites: the maximum age of a load report, as brokers write one at least every interval."""
    interval = int(setting_value(_REPORT_INTERVAL, *settings))
    return {"oldest_report_minutes": interval + _REPORT_SLACK_MINUTES}


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
    kwargs = [expectation["kwargs"] for expectation in suites()[table]["expectations"]]
    spoken_of = {*re.findall(r"\w+", json.dumps(kwargs)), *_KEYS[table]}
    rows = frame.select(*(column for column in frame.columns if column in spoken_of))
    return rows if table == _READ_AGAIN else materialized(rows)


def _results_of(table: str, make_rows: Callable[[], DataFrame], parameters: Mapping[str, int]) -> list[CheckResult]:
    try:
        rows = judged_rows(make_rows, table)
    except AnalysisException as error:
        message = str(error).partition(";\n")[0]  # what follows is Spark's plan
        unknown = {"success": False, "exception_info": {"raised_exception": True, "exception_message": message}}
        return [_result(check, unknown, []) for check in checks() if check.table == table]
    results = run_suite(rows, table, suites()[table]["expectations"], parameters)
    _log.info("the checks of table %s are done", table)
    return results


def run_suite(
    rows: DataFrame, table: str, expectations: Sequence[Mapping[str, Any]], parameters: Mapping[str, int]
) -> list[CheckResult]:
    """Results of a table's expectations in their order.

    The first pass asks only which hold, which Great Expectations computes in one aggregation. The failing rows of the
    others are counted, and fetched if there are few enough to name.
    """
    import great_expectations as gx

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

    def outcomes(codes: Iterable[str], result_format: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        wanted = set(codes)
        chosen = [expectation for expectation in expectations if expectation["meta"]["code"] in wanted]
        if not chosen:
            return {}
        result = batch.validate(
            gx.ExpectationSuite(name=table, expectations=chosen),
            result_format=result_format,
            expectation_parameters=dict(parameters),
        )
        # Results don't come in the order of the suite.
        return {
            one.expectation_config.meta["code"]: {
                "type": one.expectation_config.type,
                "success": one.success,
                "result": one.result,
                "exception_info": one.exception_info,
            }
            for one in result.results
        }

    codes = {expectation["meta"]["code"] for expectation in expectations}
    mine = [check for check in checks() if check.table == table and check.code in codes]
    judged = outcomes((check.code for check in mine), {"result_format": "BOOLEAN_ONLY"})
    failed = [code for code, outcome in judged.items() if _error(outcome) is None and not outcome["success"]]
    counted = outcomes(failed, {"result_format": "BASIC", "partial_unexpected_count": 0})
    detailed = outcomes(
        (code for code in failed if _failed_rows(counted[code]) <= _CONFINABLE_ROWS),
        {"result_format": "COMPLETE", "unexpected_index_column_names": list(_KEYS[table])},
    )
    return [
        _result(
            check,
            counted.get(check.code, judged[check.code]),
            _failing_rows(detailed[check.code]) if check.code in detailed else [],
        )
        for check in mine
    ]


def _result(check: Check, outcome: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> CheckResult:
    error = _error(outcome)
    failed_rows = 0 if error else _failed_rows(outcome)
    confines = check.effect == "confine" and failed_rows > 0
    # Rows that can't all be named can't be set aside.
    stops = error is not None or (confines and len(rows) != failed_rows)
    return CheckResult(
        check=check.name,
        severity="critical" if stops else check.severity,
        scope=check.scope,
        effect="stop" if stops else check.effect,
        about=None if check.about is None else tuple(check.about),
        success=bool(outcome["success"]),
        title=check.title,
        reason=check.reason,
        action=check.action,
        failed_rows=failed_rows,
        examples=tuple(_as_json(row) for row in rows[:_EXAMPLES]),
        excluded=tuple(sorted({row[check.scope] for row in rows})) if confines else (),
        concerned=_concerned(check, rows, failed_rows),
        error=error,
    )


def _concerned(check: Check, rows: Sequence[Mapping[str, Any]], failed_rows: int) -> tuple[str, ...] | None:
    """The names that a failed check casts doubt on; None if there are too many to list, so it may be any."""
    if check.effect != "doubt" or check.scope == "cluster":
        return ()
    return tuple(sorted({row[check.scope] for row in rows})) if len(rows) == failed_rows <= _NAMED_ROWS else None


def _error(outcome: Mapping[str, Any]) -> str | None:
    """Why an expectation could not be evaluated. The details are flat, or nested by metric if one raised an error."""
    information = outcome.get("exception_info") or {}
    nested = [information, *(value for value in information.values() if isinstance(value, Mapping))]
    messages = [one.get("exception_message") or "no message" for one in nested if one.get("raised_exception")]
    return " ".join(str(messages[0]).split())[:500] if messages else None


def _failed_rows(outcome: Mapping[str, Any]) -> int:
    """Failing rows of a row-wise expectation or of a query; one for an assertion about the table as a whole."""
    result = outcome["result"]
    if outcome["success"]:
        return 0
    if "unexpected_count" in result:
        return int(result["unexpected_count"])
    is_query = outcome["type"] == "unexpected_rows_expectation"
    return int(result["observed_value"]) if is_query else 1


def _failing_rows(outcome: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every failing row: the columns that identify it, and the value."""
    result = outcome["result"]
    rows = result.get("unexpected_index_list") or result.get("details", {}).get("unexpected_rows") or []
    return sorted((dict(row) for row in rows), key=str)


def _as_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the numbers that JSON lacks as text."""
    return {
        column: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for column, value in row.items()
    }
