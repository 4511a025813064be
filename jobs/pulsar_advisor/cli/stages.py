"""The verbs from cluster to report: capture, normalize, validate, lint, recommend and report; `run` skips only lint."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from pulsar_advisor.admin.home import with_home
from pulsar_advisor.cli.options import (
    DetailedExitCode,
    Flag,
    Json,
    Master,
    PlanOptions,
    RequestOptions,
    SnapshotId,
    WholeNumberIfAny,
)
from pulsar_advisor.cli.output import (
    CHANGES_PROPOSED,
    GOAL_NOT_REACHED,
    log,
    print_json,
    result_of,
    say,
    say_lines,
    timed,
)
from pulsar_advisor.cli.places import LedgerPlace, Place, Reach
from pulsar_advisor.cli.rendering import check_lines, entry_lines, lint_lines, not_evaluated
from pulsar_advisor.cli.starting import load_soon, spark_for, spark_soon
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.execution.person import person_on_command_line
from pulsar_advisor.model.bounds import seconds
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.reporting.forms import Form
from pulsar_advisor.storage.root import LATEST, Root, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsar_advisor.admin.options import CaptureOptions
    from pulsar_advisor.documents.recommendation import Recommendation
    from pulsar_advisor.documents.validation import Validation
    from pulsar_advisor.planning.requests.request import Request
    from pulsar_advisor.reporting.page import ReportPage
    from pulsar_advisor.reporting.verdict import Command

_LEDGER: Final = "pulsar_advisor.execution.ledger.opening"
"""Loads the database library."""


def capture(
    *,
    reach: Reach = Reach(),
    listen: str | None = None,
    max_requests: WholeNumberIfAny = None,
    second_pass: Annotated[bool | None, Flag] = None,
    explain: Annotated[bool, Flag] = False,
    json: Json = False,
) -> None:
    """Read a cluster into a raw snapshot, without changing anything on it; prints the snapshot's id.

    Parameters
    ----------
    listen
        How long to wait until all Extensible brokers have published what their leader sees, 0s to 15m; by default 65s.
    max_requests
        Maximum number of requests; the manifest lists what was not read.
    second_pass
        Where bundles moved meanwhile, read the brokers again after their next statistics pass.
    explain
        List the calls that a capture would make, and make none.
    """
    manners = {"listen_s": _seconds(listen), "max_requests": max_requests, "second_pass": second_pass}
    if explain:
        from pulsar_advisor.capture.explanation import explained

        calls = list(explained(reach.options(**manners)))
        lines = (f"{call.target:<12} {call.call}  ({call.times})" for call in calls)
        print_json(calls) if json else say_lines(lines)
        return
    snapshot = capture_into(reach.place.open(), reach.options(**manners))
    reach.place.seal(snapshot, "capture")
    if json:
        from pulsar_advisor.storage.results import read_manifest

        print_json(read_manifest(snapshot))
    else:
        say(snapshot.id)


def _seconds(duration: str | None) -> int | None:
    return None if duration is None else seconds(duration)


def capture_into(root: Root, options: CaptureOptions) -> Snapshot:
    """Take a snapshot now."""
    from pulsar_advisor.cli.capture_progress import shown_progress
    from pulsar_advisor.stages.capture import run as take_snapshot

    with shown_progress() as progress:
        return take_snapshot(options, root, progress)


def normalize(
    *,
    place: LedgerPlace = LedgerPlace(),
    snapshot: SnapshotId = LATEST,
    master: Master = "local[*]",
    json: Json = False,
) -> None:
    """Build the tables of a raw snapshot."""
    from pulsar_advisor.stages.normalize import run as make_tables

    chosen = place.at(snapshot)
    with timed("normalize"), place.sealing(chosen, "normalize"):
        result = make_tables(spark_for(master, "normalize", chosen), chosen)
    if json:
        print_json(result)
        return
    for table, rows in sorted(result.tables.items()):
        say(f"{table:<12} {rows:>10,} rows")


def validate(
    *,
    place: LedgerPlace = LedgerPlace(),
    snapshot: SnapshotId = LATEST,
    master: Master = "local[*]",
    fail_on: Literal["critical", "warning"] = "critical",
    explain: str | None = None,
    trend: str | None = None,
    data_docs: Path | None = None,
    json: Json = False,
) -> None:
    """Decide whether a snapshot can be trusted; ends with exit code 3 when it must not be used.

    Parameters
    ----------
    fail_on
        The least severity that ends with exit code 3.
    explain
        Name of a check: say what it expects, why, and what to do if it fails. Validates nothing.
    trend
        Name of a check, or `all`: show its results in the last validated snapshots. Validates nothing.
    data_docs
        Folder for the result as Great Expectations Data Docs, one page per suite; they load nothing from the network.
    """
    from pulsar_advisor.quality.checks import named

    refuse_together({"--explain": explain is not None, "--trend": trend is not None})
    if explain is not None:
        entry = named(explain).entry
        print_json(entry) if json else say_lines(entry_lines(entry))
        return
    chosen = place.at(snapshot)
    if trend is not None:
        from pulsar_advisor.quality.history import trend as lines
        from pulsar_advisor.stages.validate import history as quality_history

        rows = quality_history(chosen)
        check = None if trend == "all" else named(trend).name
        shown = [row for row in rows if check in (None, row.check)]
        print_json(shown) if json else say_lines(lines(rows, check))
        return
    from pulsar_advisor.stages.validate import run as judge

    with timed("validate"), place.sealing(chosen, "validate"):
        result = judge(spark_for(master, "validate", chosen), chosen)
    if data_docs is not None:
        from pulsar_advisor.stages.validate import write_data_docs

        write_data_docs(result, with_home(data_docs))
    print_json(result) if json else say_lines(check_lines(result))
    _stop_if_unfit(result, ("critical", "warning") if fail_on == "warning" else ("critical",))


_COLUMNS: Final = "capture.columns"
"""The check that a snapshot's tables are of this release; the snapshot itself may be as good as ever."""


def _stop_if_unfit(result: Validation, severities: Sequence[str] = ("critical",)) -> None:
    grave = [check for check in result.results if not check.success and check.severity in severities]
    if not grave:
        return
    unknown = not_evaluated(grave)
    found = [check.check for check in grave if check.error is None]
    found += [f"{count(number, 'check')} of {table} could not be evaluated" for (table, _), number in unknown.items()]
    todo = "capture again"
    if unknown or _COLUMNS in found:
        place = f"cluster={result.cluster}/snapshot={result.snapshot}"
        todo = f"remove tables/*/{place} and validation/{place}, and normalize again"
    raise DataNotFit(
        f"snapshot {result.snapshot} must not be used: {', '.join(found)}; "
        f"`validate --json` shows reasons and remedies; then {todo}"
    )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Making:
    """What every verb that makes plans takes besides its goal."""

    place: LedgerPlace = LedgerPlace()
    snapshot: SnapshotId = LATEST
    plan_options: PlanOptions = PlanOptions()
    master: Master = "local[*]"
    detailed_exitcode: DetailedExitCode = False
    json: Json = False

    def plan(self, goal: Goal) -> None:
        """Make the plan for a goal, and show it."""
        self.answer(self.plan_options.request_for(goal))

    def answer(self, request: Request) -> None:
        """Make the plans of a request, show the verdict on them, and end with the exit code that fits it."""
        snapshot = self.place.at(self.snapshot)
        with timed("recommend"):
            spark = spark_soon(self.master, "recommend", snapshot)
            document = _recommend(spark, snapshot, request, self.place)
        page = None
        if not self.json:
            from pulsar_advisor.stages.report import report_page

            page = report_page(snapshot, self.place.ledger_url_if_any())
        with result_of(_exit_code(document, detailed=self.detailed_exitcode)):
            print_json(document) if page is None else _show_verdict(page)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Recommending(Making):
    """What the verb takes that has strategies in place of a goal."""

    plan_options: RequestOptions = RequestOptions()


def recommend(*, making: Recommending = Recommending()) -> None:
    """Compute what Pulsar's strategies would do, and write a plan for each combination."""
    making.answer(making.plan_options.request())


def _exit_code(recommendation: Recommendation, *, detailed: bool) -> int:
    """0 unless a goal is missed or can't be judged, data is too little for an answer or, if `detailed`, changes."""
    from pulsar_advisor.planning.kinds.goal_outcome import FALLS_SHORT

    outcome, too_little = recommendation.goal_outcome, recommendation.coverage.decides or recommendation.is_unjudged
    if outcome in FALLS_SHORT or (outcome is not None and too_little):
        return GOAL_NOT_REACHED
    if too_little:
        return DataNotFit.exit_code
    return CHANGES_PROPOSED if detailed and recommendation.advice.plan is not None else 0


def _recommend(
    spark: Callable[[], SparkSession | None], snapshot: Snapshot, request: Request, place: LedgerPlace
) -> Recommendation:
    from pulsar_advisor.stages.propose import run as propose_plans
    from pulsar_advisor.stages.recommend import check
    from pulsar_advisor.stages.recommend import run as compute

    check(snapshot, request)
    load_soon(_LEDGER)
    document = compute(spark, snapshot, request)
    if place.given_ledger() is None and snapshot.root.own_ledger_url is None:
        log("no ledger for an object store: no proposer recorded, so no plan can be approved; pass --ledger URL")
        return document
    place.seal(snapshot, "recommend")
    with place.opened_ledger() as book:
        propose_plans(snapshot.root, document, book, person_on_command_line(document.proposer))
    return document


def lint(*, place: Place = Place(), snapshot: SnapshotId = LATEST, json: Json = False) -> None:
    """Say which load balancing settings can't work on this cluster, hide an imbalance or change nothing, and why."""
    from pulsar_advisor.stages.lint import run as judge

    found, too_little = judge(place.at(snapshot))
    if too_little:
        log(too_little)
    with result_of(DataNotFit.exit_code if too_little else 0):
        print_json(list(found)) if json else say_lines(lint_lines(found))


def report(
    *,
    place: LedgerPlace = LedgerPlace(),
    snapshot: SnapshotId = LATEST,
    output: str | None = None,
    format: Form = "html",
    json: Json = False,
) -> None:
    """Write the report of a snapshot's last recommendation, and show its verdict.

    Parameters
    ----------
    output
        File to write; by default beside the other reports.
    format
        Form of the report.
    """
    from pulsar_advisor.stages.report import run as make_report

    file = None if output is None else with_home(output)
    page, path = make_report(place.at(snapshot), format, file, place.ledger_url_if_any())
    is_unfit = page.trust.coverage.why or page.verdict.kind == "not_fit"
    with result_of(DataNotFit.exit_code if is_unfit else 0):
        if json:
            from pulsar_advisor.reporting.json import json_chunks

            sys.stdout.writelines(json_chunks(page))
        else:
            _show_verdict(page, has_report=True)
            say(f"report: {path}")


def _show_verdict(page: ReportPage, *, has_report: bool = False) -> None:
    from rich.console import Console

    from pulsar_advisor.reporting.terminal import render_terminal

    render_terminal(page, Console(), tuple(_on_path()), has_report=has_report)


def _on_path() -> Iterator[Command]:
    """The command after which the shell finds ours, unless it does already: `make demo` activates nothing."""
    from pulsar_advisor.reporting.verdict import Command

    ours = Path(sys.executable).parent
    if which("pulsar-advisor") is None and (ours / "pulsar-advisor").exists():
        yield Command(
            "Once per shell, so that it finds the command", (f'export PATH={shlex.quote(str(ours))}:"$PATH"',)
        )


def run(
    *,
    reach: Reach = Reach(),
    from_archive: Path | None = None,
    listen: str | None = None,
    request_options: RequestOptions = RequestOptions(),
    master: Master = "local[*]",
    detailed_exitcode: DetailedExitCode = False,
    json: Json = False,
) -> None:
    """Run everything from capture to report in one Spark session; says how long each stage took.

    Parameters
    ----------
    from_archive
        Take the snapshot from an exported archive instead of a cluster.
    listen
        As for `capture`.
    """
    if from_archive is not None and (reach.connection.is_given or listen is not None):
        raise UsageError("--from-archive takes the snapshot from a file: omit the connection options and --listen")
    place = reach.place
    root = place.open()
    request = request_options.request()
    from pulsar_advisor.storage.archive import import_snapshot

    with timed("capture"):
        snapshot = (
            capture_into(root, reach.options(listen_s=_seconds(listen)))
            if from_archive is None
            else import_snapshot(with_home(from_archive), root)
        )
    # Java takes seconds to start, and so do these: load them meanwhile.
    load_soon("pulsar_advisor.quality.library", _LEDGER, "pulsar_advisor.reporting.html")
    with timed("start of Spark"):
        spark = spark_for(master, "run", snapshot)
    if from_archive is None:
        place.seal(snapshot, "capture")
    with timed("normalize"), place.sealing(snapshot, "normalize"):
        from pulsar_advisor.stages.normalize import run as make_tables

        make_tables(spark, snapshot)
    with timed("validate"):
        from pulsar_advisor.stages.validate import run as judge

        with place.sealing(snapshot, "validate"):
            judged = judge(spark, snapshot)
        _stop_if_unfit(judged)
    with timed("recommend"):
        document = _recommend(lambda: spark, snapshot, request, place)
    with timed("report"):
        from pulsar_advisor.stages.report import run as make_report

        page, path = make_report(snapshot, ledger_url=place.ledger_url_if_any())
    with result_of(_exit_code(document, detailed=detailed_exitcode)):
        if json:
            from pulsar_advisor.documents.recommendation import RunResult

            print_json(RunResult(**vars(document), report=path))
        else:
            _show_verdict(page, has_report=True)
            say(f"report: {path}")
