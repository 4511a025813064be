"""`pulsar-advisor`: one verb a stage. Results go to stdout, progress and logs to stderr; exit codes say how it ended.

0 done · 1 unexpected failure · 2 usage · 3 data not fit for use · 4 refused · 5 applied in part, or deviates.
"""

from __future__ import annotations

import json as json_text
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import App, CycloptsError, Parameter

from pulsar_advisor.model.errors import AdvisorError, DataNotFit, Deviates, Refused, UsageError
from pulsar_advisor.storage import LATEST, Root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsar_advisor.capture.options import CaptureOptions
    from pulsar_advisor.execution.ledger import Ledger
    from pulsar_advisor.model.plan import Plan
    from pulsar_advisor.reporting.page import ReportPage
    from pulsar_advisor.stages.recommend import Request

# Stages import Spark, Great Expectations, kazoo, SQLAlchemy: each verb imports only what it needs, when it runs.

DISTRIBUTION: Final = "pulsar-rebalance-advisor"

app = App(
    name="pulsar-advisor",
    help="Previews, explains and carries out load balancing of Apache Pulsar clusters.",
    version=lambda: version(DISTRIBUTION),
    default_parameter=Parameter(negative_iterable=(), show_default=True),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
snapshots = App(name="snapshots", help="List snapshots, look at one, carry one to another machine, remove old ones.")
app.command(snapshots)

INTERRUPTED: Final = 130


class Ended(Exception):
    """A call that said all there is to say, and ends with this exit code."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


Json = Annotated[bool, Parameter(name="--json", negative="", help="Print the result as JSON.")]
Master = Annotated[str, Parameter(help="Spark master.")]
Flag = Parameter(negative="")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a cluster's files are."""

    root: str
    """Where everything is kept: a path or an object-store URL."""
    cluster: str
    """Your name for the cluster; part of every path."""

    def open(self) -> Root:
        """The root."""
        return Root(self.root, self.cluster)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LedgerPlace:
    """Where the ledger is."""

    ledger: str | None = None
    """Ledger database (SQLAlchemy URL); by default SQLite beside a local root."""

    def url(self, root: Root) -> str:
        """As given, or beside the root."""
        from pulsar_advisor.execution.ledger import default_ledger_url

        return self.ledger or default_ledger_url(root)

    def open(self, root: Root) -> Ledger:
        """The ledger, made if it isn't there."""
        from pulsar_advisor.execution.ledger import open_ledger

        return open_ledger(self.url(root))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Connection:
    """How to reach a cluster: by flags, or by a profile of the config file, or both."""

    admin_url: tuple[str, ...] = ()
    """Admin REST address of a broker or of a proxy before them; repeatable, tried in turn."""
    zookeeper: str | None = None
    """ZooKeeper hosts: host:port,host:port[/chroot]."""
    service_url: str | None = None
    """Binary address, pulsar://broker:6650: reads what Extensible brokers tell their leader of ownership and load."""
    profile: str | None = None
    """Take the connection from this profile of the config file."""
    config: Path | None = None
    """Config file (TOML)."""
    token_file: Path | None = None
    """File that holds the token."""
    token_env: str | None = None
    """Name of the environment variable that holds the token."""
    tls_ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    tls_cert_file: Path | None = None
    """Our client certificate."""
    tls_key_file: Path | None = None
    """The key of our client certificate."""

    def options(self, **manners: Any) -> CaptureOptions:
        """The connection, checked."""
        from pulsar_advisor.capture.options import capture_options

        admin = asdict(self)
        admin["admin_urls"] = admin.pop("admin_url")
        places = {name: admin.pop(name) for name in ("zookeeper", "service_url", "profile", "config")}
        return capture_options(admin=admin, **places, **manners)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What to recommend, and within which limits."""

    shedder: str = "all"
    """A shedder by Pulsar's class name, or 'all'."""
    placement: str = "all"
    """A placement strategy by Pulsar's class name, or 'all'."""
    splits: bool = True
    """Whether to recommend bundle splits."""
    set: tuple[str, ...] = ()
    """What if this setting were so: KEY=VALUE, by Pulsar's key; repeatable."""
    view: Literal["judged", "fresh", "published"] = "judged"
    """Figures as the brokers have them now (fresh), or as the leader sees them in ZooKeeper (published); judged: those
    that were validated, fresh if any broker was asked."""
    history: int = 0
    """How many earlier snapshots the strategies learn from."""
    max_unloads: int | None = None
    """Plan at most so many unloads."""
    max_splits: int = 10
    """Plan at most so many splits."""
    seed: int = 0
    """Where Pulsar draws at random, draw by this."""
    as_: Annotated[str | None, Parameter(name="--as")] = None
    """Your name: it stands in the ledger as the proposer's."""

    def request(self) -> Request:
        """The wishes, checked."""
        from pulsar_advisor.planning.build_plan import Limits
        from pulsar_advisor.stages.recommend import Request, what_if

        return Request(
            shedder=self.shedder,
            placement=self.placement,
            splits=self.splits,
            what_if=what_if(self.set),
            view=self.view,
            history=self.history,
            limits=Limits(self.max_unloads, self.max_splits),
            seed=self.seed,
            proposer=self.as_ or _os_user(),
        )


@app.command
def capture(
    *,
    place: Place | None = None,
    connection: Connection = Connection(),
    max_requests: int | None = None,
    second_pass: Annotated[bool | None, Flag] = None,
    explain: Annotated[bool, Flag] = False,
    json: Json = False,
) -> None:
    """Read a cluster into a raw snapshot, without changing anything on it; prints the snapshot's id.

    Parameters
    ----------
    max_requests
        Send at most so many requests; the manifest names what was not asked.
    second_pass
        Read brokers between which bundles moved once more, after their next pass of statistics.
    explain
        Say which calls would be made, and make none.
    """
    manners = {"max_requests": max_requests, "second_pass": second_pass}
    if explain:
        from pulsar_advisor.capture.explanation import explained

        calls = [asdict(call) for call in explained(connection.options(**manners))]
        lines = (f"{call['whom']:<12} {call['call']}  ({call['times']})" for call in calls)
        _print(calls) if json else _say("\n".join(lines))
        return
    if place is None:
        raise UsageError("say where the snapshot goes: --root and --cluster; or only list the calls: --explain")
    snapshot = _capture(place.open(), connection.options(**manners))
    _print({"cluster": place.cluster, "snapshot": snapshot}) if json else _say(snapshot)


def _capture(root: Root, options: CaptureOptions) -> str:
    from pulsar_advisor.capture.capture import capture as take_snapshot
    from pulsar_advisor.capture.progress import shown_progress

    with shown_progress() as progress:
        return take_snapshot(options, root, progress)


@app.command
def normalize(*, place: Place, snapshot: str = LATEST, master: Master = "local[*]", json: Json = False) -> None:
    """Make tables of a raw snapshot."""
    from pulsar_advisor.tables.normalize import normalize as make_tables

    root = place.open()
    snapshot = root.resolve(snapshot)
    result = make_tables(_spark(master, "normalize", root, snapshot), root, snapshot)
    if json:
        _print(result)
        return
    for table, rows in sorted(result["tables"].items()):
        _say(f"{table:<12} {rows:>10,} rows")


@app.command
def validate(
    *,
    place: Place | None = None,
    snapshot: str = LATEST,
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
        A check by its name: say what it holds, why and what to do, and judge nothing.
    trend
        A check by its name, or `all`: say how it went in the last validated snapshots, and judge nothing.
    data_docs
        A folder for the result as Great Expectations' Data Docs, a page each suite; they fetch nothing.
    """
    from pulsar_advisor.quality.explain import explain as explained
    from pulsar_advisor.quality.explain import named

    if explain is not None:
        _say(explained(explain))
        return
    if place is None:
        raise UsageError("say which cluster to judge: --root and --cluster; or which check to explain: --explain CHECK")
    root = place.open()
    snapshot = root.resolve(snapshot)
    if trend is not None:
        from pulsar_advisor.quality.history import trend as lines

        for line in lines(root, snapshot, None if trend == "all" else named(trend).name):
            _say(line)
        return
    from pulsar_advisor.quality.validate import validate as judge

    result = judge(_spark(master, "validate", root, snapshot), root, snapshot)
    if data_docs is not None:
        from pulsar_advisor.quality.data_docs import write_data_docs

        write_data_docs(result, data_docs)
    failed = [check for check in result["results"] if not check["success"]]
    if json:
        _print(result)
    else:
        for check in failed:
            if check["error"] is None:
                _say(f"{check['severity']:<9} {check['check']}: {check['title']} ({check['failed_rows']} rows)")
        for (table, error), number in _not_evaluated(failed).items():
            _say(f"critical  {table}: {number} check(s) could not be evaluated: {error}")
        _say(f"{len(result['results']) - len(failed)} of {len(result['results'])} checks passed")
    _stop_if_unfit(result, ("critical", "warning") if fail_on == "warning" else ("critical",))


def _not_evaluated(failed: Iterable[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Table and error -> how many of its checks that error kept from being evaluated."""
    return Counter((c["check"].partition(".")[0], c["error"]) for c in failed if c["error"] is not None)


def _stop_if_unfit(result: dict[str, Any], severities: Sequence[str] = ("critical",)) -> None:
    grave = [c for c in result["results"] if not c["success"] and c["severity"] in severities]
    if not grave:
        return
    unknown = _not_evaluated(grave)
    found = [c["check"] for c in grave if c["error"] is None]
    found += [f"{number} check(s) of {table} could not be evaluated" for (table, _), number in unknown.items()]
    todo = "capture again"
    if unknown:
        place = f"cluster={result['cluster']}/snapshot={result['snapshot']}"
        todo = f"remove tables/*/{place} and validation/{place}, and normalize again"
    raise DataNotFit(
        f"snapshot {result['snapshot']} must not be used: {', '.join(found)}; "
        f"`validate --json` says why and what to do, then {todo}"
    )


@app.command
def recommend(
    *,
    place: Place,
    snapshot: str = LATEST,
    wishes: Wishes = Wishes(),
    ledger: LedgerPlace = LedgerPlace(),
    master: Master = "local[*]",
    json: Json = False,
) -> None:
    """Compute what Pulsar's strategies would do, and write a plan for each combination."""
    root = place.open()
    request = wishes.request()
    snapshot = root.resolve(snapshot)
    document = _recommend(lambda: _spark(master, "recommend", root, snapshot), root, snapshot, request, ledger)
    _print(document) if json else _show_recommendation(document)


def _recommend(
    spark: Callable[[], SparkSession], root: Root, snapshot: str, request: Request, ledger: LedgerPlace
) -> dict[str, Any]:
    from pulsar_advisor.execution.approval import person_on_command_line
    from pulsar_advisor.stages.recommend import check, propose_plans
    from pulsar_advisor.stages.recommend import recommend as compute

    check(root, snapshot, request)
    document = compute(spark(), root, snapshot, request)
    if ledger.ledger is None and root.path.protocol not in ("", "file"):
        _log("no ledger beside an object store: nobody is recorded as proposer, no plan can be approved (--ledger URL)")
        return document
    with closing(ledger.open(root)) as book:
        propose_plans(root, document, book, person_on_command_line(document["proposer"]))
    return document


def _os_user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


def _show_recommendation(document: dict[str, Any]) -> None:
    for finding in document["findings"][:3]:
        _say(f"- {finding['sentence']}")
    for refusal in document["refusals"]:
        _say(f"- {refusal['sentence']}")
    if document["advice"]["digest"]:
        _say(f"plan:   {document['advice']['plan']}")
        _say(f"digest: {document['advice']['digest']}")


@app.command
def report(
    *,
    place: Place,
    snapshot: str = LATEST,
    output: str | None = None,
    format: Literal["html", "json", "md", "csv"] = "html",
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
    from pulsar_advisor.stages.report import report_page, write_report

    root = place.open()
    snapshot = root.resolve(snapshot)
    page = report_page(root, snapshot)
    path = write_report(page, root, format, output)
    if json:
        _print({"cluster": place.cluster, "snapshot": snapshot, "report": path})
        return
    _show_verdict(page)
    _say(f"report: {path}")


def _show_verdict(page: ReportPage) -> None:
    from rich.console import Console

    from pulsar_advisor.reporting.terminal import render_terminal

    render_terminal(page, Console())


@app.command
def run(
    *,
    place: Place,
    from_archive: Path | None = None,
    connection: Connection = Connection(),
    wishes: Wishes = Wishes(),
    ledger: LedgerPlace = LedgerPlace(),
    master: Master = "local[*]",
    json: Json = False,
) -> None:
    """Capture to report in one go, in one Spark session; says how long each stage took.

    Parameters
    ----------
    from_archive
        Take the snapshot from an exported archive instead of a cluster.
    """
    from pulsar_advisor.capture.archive import import_snapshot

    if from_archive is not None and connection != Connection():
        raise UsageError("--from-archive takes the snapshot from a file: leave out what leads to a cluster")
    root = place.open()
    request = wishes.request()
    with _timed("capture"):
        snapshot = _capture(root, connection.options()) if from_archive is None else import_snapshot(from_archive, root)
    with _timed("start of Spark"):
        spark = _spark(master, "run", root, snapshot)
    with _timed("normalize"):
        from pulsar_advisor.tables.normalize import normalize as make_tables

        make_tables(spark, root, snapshot)
    with _timed("validate"):
        from pulsar_advisor.quality.validate import validate as judge

        _stop_if_unfit(judge(spark, root, snapshot))
    with _timed("recommend"):
        document = _recommend(lambda: spark, root, snapshot, request, ledger)
    with _timed("report"):
        from pulsar_advisor.stages.report import report_page, write_report

        page = report_page(root, snapshot)
        path = write_report(page, root, "html", None)
    if json:
        _print({"cluster": place.cluster, "snapshot": snapshot, "report": path, "advice": document["advice"]})
        return
    _show_verdict(page)
    _say(f"report: {path}")


@app.command
def approve(
    plan: str,
    /,
    *,
    digest: str,
    as_: Annotated[str, Parameter(name="--as")],
    place: Place,
    splits: Annotated[bool, Flag] = False,
    accept_worse: Annotated[bool, Flag] = False,
    accept_low_confidence: Annotated[bool, Flag] = False,
    expires: str = "4h",
    comment: str = "",
    ledger: LedgerPlace = LedgerPlace(),
    json: Json = False,
) -> None:
    """Approve exactly one plan, by its digest.

    Parameters
    ----------
    plan
        Path or URL of the plan file.
    digest
        The plan's digest, as you read it in the report.
    as_
        Your name, for the ledger.
    splits
        Approve its splits too: they can't be undone.
    accept_worse
        Approve it although it is predicted to make things worse.
    accept_low_confidence
        Approve its steps of low confidence too.
    expires
        How long the approval holds: 90s, 30m, 4h, 1d.
    comment
        Why.
    """
    from pulsar_advisor.execution.approval import ApprovalPolicy, person_on_command_line
    from pulsar_advisor.execution.approval import approve as record

    with _opened(plan, place, ledger) as (document, _, book):
        approval = record(
            book,
            document,
            digest=digest,
            approver=person_on_command_line(as_),
            policy=ApprovalPolicy(),
            allows_splits=splits,
            accepts_worse=accept_worse,
            accepts_low_confidence=accept_low_confidence,
            valid_for_s=_seconds(expires),
            comment=comment,
        )
    if json:
        _print({"digest": digest, "approver": approval.approver, "expires_at_ms": approval.expires_at_ms})
    else:
        _say(f"approved by {approval.approver} for {expires}: {digest}")


@app.command
def withdraw(
    plan: str,
    /,
    *,
    as_: Annotated[str, Parameter(name="--as")],
    place: Place,
    comment: str = "",
    ledger: LedgerPlace = LedgerPlace(),
) -> None:
    """Take the approval of a plan back; a run that is under way stops before its next call.

    Parameters
    ----------
    plan
        Path or URL of the plan file.
    as_
        Your name, for the ledger.
    comment
        Why.
    """
    from pulsar_advisor.execution.approval import person_on_command_line
    from pulsar_advisor.execution.approval import withdraw as take_back
    from pulsar_advisor.model.plan import digest_of

    with _opened(plan, place, ledger) as (document, _, book):
        digest = digest_of(document)
        number = take_back(book, digest, person_on_command_line(as_), comment)
    _say(f"withdrawn: {number} approval(s) of {digest}")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Care:
    """How carefully a plan is carried out."""

    max_age: str = "6h"
    """Greatest age of the plan's snapshot: 90s, 30m, 6h, 1d."""
    pause: str = "10s"
    """Between two calls."""
    canary_hold: str = "60s"
    """How long the first step must hold before the second one is sent."""
    error_budget: int = 1
    """Failed steps that are forgiven; one more stops the run. The first step may not fail."""
    on_drift: Literal["stop", "skip"] = "stop"
    """What to do about a step whose world has changed."""


@app.command
def apply(
    plan: str,
    /,
    *,
    place: Place,
    connection: Connection = Connection(),
    care: Care = Care(),
    dry_run: Annotated[bool, Flag] = False,
    resume: Annotated[bool, Flag] = False,
    abort: Annotated[bool, Flag] = False,
    as_: Annotated[str | None, Parameter(name="--as")] = None,
    ledger: LedgerPlace = LedgerPlace(),
    json: Json = False,
) -> None:
    """Carry out an approved plan: throttled, verified step by step, resumable.

    Parameters
    ----------
    plan
        Path or URL of the plan file.
    dry_run
        Check everything and show what would be sent; send nothing.
    resume
        Go on with a run that ended early, from what the cluster shows.
    abort
        End a run for good; a process that still holds it stops before its next call.
    as_
        Your name, for the ledger (with --abort).
    """
    from pulsar_advisor.execution.apply import abort as end_run
    from pulsar_advisor.execution.approval import person_on_command_line
    from pulsar_advisor.execution.executor import ApplyOptions
    from pulsar_advisor.stages.execute import apply_to_cluster
    from pulsar_advisor.stages.plans import PLANS

    with _opened(plan, place, ledger) as (document, root, book):
        if abort:
            ended = end_run(book, document, person_on_command_line(as_ or _os_user()))
            _say("\n".join(f"run {run.id} of {run.digest} ended" for run in ended))
            return
        options = ApplyOptions(
            max_age_s=_seconds(care.max_age),
            on_drift=care.on_drift,
            pause_s=_seconds(care.pause),
            canary_hold_s=_seconds(care.canary_hold),
            error_budget=care.error_budget,
            dry_run=dry_run,
            resume=resume,
            undo_folder=root.folder(PLANS, document.snapshot),
        )
        result = apply_to_cluster(document, book, connection.options().required_admin, options, _log)
    if json:
        _print(result.as_document())
    else:
        for step in result.steps:
            _say(f"{step.id} {step.action:<6} {step.bundle} {step.state} {step.detail}".rstrip())
            if dry_run:
                _say(f"         {step.request}")
        for refusal in result.refusals:
            _say(f"refused: {refusal}")
        _say(result.sentence)
    if result.exit_code:
        raise Ended(result.exit_code)


@app.command
def verify(
    plan: str,
    /,
    *,
    place: Place,
    snapshot: str = LATEST,
    connection: Connection = Connection(),
    ledger: LedgerPlace = LedgerPlace(),
    master: Master = "local[*]",
    json: Json = False,
) -> None:
    """Compare a plan that was carried out with the cluster; ends with exit code 5 when it deviates.

    Parameters
    ----------
    plan
        Path or URL of the plan file.
    snapshot
        A snapshot taken since; with a connection (--admin-url or --profile) one is taken now instead.
    """
    from pulsar_advisor.stages.execute import verify_with_snapshot
    from pulsar_advisor.tables.normalize import normalize as make_tables

    captures = bool(connection.admin_url or connection.profile)
    with _opened(plan, place, ledger) as (document, root, book):
        snapshot = _capture(root, connection.options()) if captures else root.resolve(snapshot)
        make_tables(_spark(master, "verify", root, snapshot), root, snapshot)
        result = verify_with_snapshot(document, book, root, snapshot)
    if json:
        _print(result.as_document())
    else:
        for check in result.bundles:
            _say(f"{_judgement(check.as_predicted)} {check.bundle} at {check.actual or 'nobody'}")
        for usage in result.brokers if result.usage_judged else ():
            _say(
                f"{_judgement(usage.as_predicted)} {usage.broker} {_percent(usage.actual)}, "
                f"predicted {_percent(usage.predicted)}"
            )
        if not result.usage_judged:
            _say("usage is not judged: the brokers still report figures from before the run")
    if result.deviations:
        raise Deviates(f"the cluster is not as predicted: {'; '.join(result.deviations)}")


@app.command
def doctor(*, place: Place | None = None, connection: Connection = Connection(), json: Json = False) -> None:
    """Say whether a capture would be fit: what can be reached and read, with which role, and what can't be computed."""
    from rich.console import Console

    from pulsar_advisor.capture.examination import examine
    from pulsar_advisor.stages.doctor import diagnose, print_diagnosis

    root = None if place is None else place.open()
    diagnosis = diagnose(examine(connection.options()), root)
    _print(diagnosis.document()) if json else print_diagnosis(diagnosis, Console())
    if diagnosis.exit_code:
        raise Ended(diagnosis.exit_code)


@app.command
def brokers(
    *,
    place: Place | None = None,
    snapshot: str = LATEST,
    connection: Connection = Connection(),
    watch: Annotated[tuple[int, ...] | None, Parameter(consume_multiple=(0, 1))] = None,
    json: Json = False,
) -> None:
    """The tables of `pulsar-perf monitor-brokers`, from a snapshot, or live with a connection.

    Parameters
    ----------
    watch
        Live: show them again every so many seconds (60 without a number), until interrupted.
    """
    from rich.console import Console

    from pulsar_advisor.reporting.broker_tables import as_document, print_tables
    from pulsar_advisor.stages.brokers import load_in_snapshot, load_now, watched

    if connection == Connection():
        if place is None:
            raise UsageError("whose brokers? Give --root and --cluster for a snapshot, or --admin-url for a cluster")
        if watch is not None:
            raise UsageError("a snapshot does not change: --watch needs a live cluster (--admin-url or --profile)")
        root = place.open()
        loads = iter([load_in_snapshot(root, root.resolve(snapshot))])
    else:
        options = connection.options()
        loads = watched(lambda: load_now(options), None if watch is None else next(iter(watch), 60), _log)
    console = Console()
    for load in loads:
        if watch is not None and not json:
            console.clear()  # does nothing where there is no terminal
        _print(as_document(load)) if json else print_tables(load, console)
        sys.stdout.flush()  # whoever reads a watch through a pipe reads each document when it is made


def _judgement(as_predicted: bool) -> str:
    return "as predicted" if as_predicted else "DEVIATES    "


def _percent(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{ratio:.1%}"


@snapshots.command(name="list")
def list_snapshots(*, place: Place, json: Json = False) -> None:
    """The snapshots of a cluster, oldest first."""
    root = place.open()
    ids = root.snapshots()
    _print(ids) if json else _say("\n".join(ids) or f"no snapshots of cluster '{root.cluster}' under {root.path}")


@snapshots.command(name="show")
def show_snapshot(snapshot: str = LATEST, /, *, place: Place, json: Json = False) -> None:
    """What a snapshot holds, what it lacks, and which stages have worked on it.

    Parameters
    ----------
    snapshot
        Its id, or 'latest'.
    """
    from pulsar_advisor.stages.snapshot import summary

    root = place.open()
    found = summary(root, root.resolve(snapshot))
    _print(found.document()) if json else _say("\n".join(found.lines()))


@snapshots.command(name="prune")
def prune_snapshots(
    *,
    place: Place,
    keep_days: int | None = None,
    keep_count: int | None = None,
    dry_run: Annotated[bool, Flag] = False,
    ledger: LedgerPlace = LedgerPlace(),
    json: Json = False,
) -> None:
    """Remove old snapshots and all that was made of them; the newest stays, and every one a plan refers to.

    Parameters
    ----------
    keep_days
        Keep what is younger than so many days.
    keep_count
        Keep the newest so many.
    dry_run
        Say what would be removed; remove nothing.
    """
    from datetime import UTC, datetime

    from pulsar_advisor.stages.retention import Retention, prune

    retention = Retention(keep_days, keep_count)
    pruned = prune(place.open(), retention, ledger.ledger, datetime.now(UTC), dry_run=dry_run)
    _print(pruned.document()) if json else _say("\n".join(pruned.lines()))


@snapshots.command(name="export")
def export(file: Path, /, *, place: Place, snapshot: str = LATEST) -> None:
    """Write a raw snapshot into one archive.

    Parameters
    ----------
    file
        Archive to write.
    """
    from pulsar_advisor.capture.archive import export_snapshot

    root = place.open()
    export_snapshot(root, root.resolve(snapshot), file)
    _say(str(file))


@snapshots.command(name="import")
def import_(file: Path, /, *, place: Place) -> None:
    """Take a raw snapshot out of an archive; prints its id.

    Parameters
    ----------
    file
        Archive written by `snapshots export`.
    """
    from pulsar_advisor.capture.archive import import_snapshot

    _say(import_snapshot(file, place.open()))


@contextmanager
def _opened(plan: str, place: Place, ledger: LedgerPlace) -> Iterator[tuple[Plan, Root, Ledger]]:
    """What is known of a plan: itself, the root and the ledger of its cluster.

    Raises `Refused` for a plan of another cluster, and where there is no ledger: whoever proposed it has one.
    """
    from pulsar_advisor.execution.ledger import ledger_exists
    from pulsar_advisor.stages.plans import read_plan

    document, root = read_plan(plan), place.open()
    if document.cluster != place.cluster:
        raise Refused(f"{plan} is a plan of cluster '{document.cluster}', not of '{place.cluster}'")
    if not ledger_exists(url := ledger.url(root)):
        raise Refused(f"there is no ledger at {url}, so nobody is recorded to have proposed the plan: --ledger URL")
    with closing(ledger.open(root)) as book:
        yield document, root, book


def _seconds(duration: str) -> int:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
    number, unit = duration[:-1], duration[-1:]
    if unit not in units or not number.isdecimal():
        raise UsageError(f"'{duration}' is not a duration; expected a number with s, m, h or d, for example 4h")
    return int(number) * units[unit]


def _spark(master: str, stage: str, root: Root, snapshot: str) -> SparkSession:
    from pulsar_advisor.tables.raw import raw_bytes
    from pulsar_advisor.tables.session import spark_session

    return spark_session(master, f"pulsar-advisor {stage}", raw_bytes=raw_bytes(root, snapshot))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _log(line: str) -> None:
    sys.stderr.write(line + "\n")


def _print(document: Any) -> None:
    _say(json_text.dumps(document, indent=1, sort_keys=True, ensure_ascii=False))


@contextmanager
def _timed(stage: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    _log(f"{stage}: {time.monotonic() - started:.1f} s")


def exit_code(arguments: Sequence[str]) -> int:
    """Run one call and say how it ended. With `--debug` anywhere, a failure shows its stack trace."""
    debug = "--debug" in arguments
    words = [argument for argument in arguments if argument != "--debug"]
    try:
        app(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _log(f"error: {error}\nSee `pulsar-advisor {' '.join(words[:1])} --help`.")
        return UsageError.exit_code
    except AdvisorError as error:
        if debug:
            raise
        _log(f"error: {error}")
        return error.exit_code
    except Ended as ended:
        return ended.exit_code
    except KeyboardInterrupt:
        _log("interrupted")
        return INTERRUPTED
    except Exception as error:
        if debug:
            raise
        _log(f"error: unexpected failure: {type(error).__name__}: {error}. Run again with --debug and report it.")
        return AdvisorError.exit_code
    return 0


def main() -> None:
    """Entry point of `pulsar-advisor`."""
    sys.exit(exit_code(sys.argv[1:]))
