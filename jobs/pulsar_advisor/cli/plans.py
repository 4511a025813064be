"""The verbs that act on a plan: approve, withdraw, apply, verify."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pulsar_advisor.cli.options import Care, Connection, Flag, Json, LedgerPlace, Master, Place, os_user
from pulsar_advisor.cli.output import Ended, log, print_json, say
from pulsar_advisor.cli.stages import capture_into, spark_for
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.model.bounds import seconds
from pulsar_advisor.model.errors import Deviates, Refused
from pulsar_advisor.storage.root import LATEST, Root

if TYPE_CHECKING:
    from pulsar_advisor.execution.ledger import Ledger
    from pulsar_advisor.model.plan import Plan


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
    from pulsar_advisor.stages.approve import run as record

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
            valid_for_s=seconds(expires),
            comment=comment,
        )
    if json:
        print_json({"digest": digest, "approver": approval.approver, "expires_at_ms": approval.expires_at_ms})
    else:
        say(f"approved by {approval.approver} for {expires}: {digest}")


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
    say(f"withdrawn: {number} approval(s) of {digest}")


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
    from pulsar_advisor.stages.apply import run as carry_out
    from pulsar_advisor.storage.plans import PLANS

    refuse_together({"--abort": abort, "--resume": resume})
    refuse_together({"--abort": abort, "--dry-run": dry_run})
    with _opened(plan, place, ledger) as (document, root, book):
        if abort:
            ended = end_run(book, document, person_on_command_line(as_ or os_user()))
            say("\n".join(f"run {run.id} of {run.digest} ended" for run in ended))
            return
        options = ApplyOptions(
            max_age_s=seconds(care.max_age),
            on_drift=care.on_drift,
            pause_s=seconds(care.pause),
            canary_hold_s=seconds(care.canary_hold),
            error_budget=care.error_budget,
            dry_run=dry_run,
            resume=resume,
            undo_folder=root.folder(PLANS, document.snapshot),
        )
        result = carry_out(document, book, connection.options().required_admin, options, log)
    if json:
        print_json(result.as_document())
    else:
        for step in result.steps:
            say(f"{step.id} {step.action:<6} {step.bundle} {step.state} {step.detail}".rstrip())
            if dry_run:
                say(f"         {step.request}")
        for refusal in result.refusals:
            say(f"refused: {refusal}")
        say(result.sentence)
    if result.exit_code:
        raise Ended(result.exit_code)


def verify(
    plan: str,
    /,
    *,
    place: Place,
    snapshot: str | None = None,
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
        A snapshot taken since; the latest unless said otherwise. With a connection (--admin-url or --profile) one is
        taken now instead.
    """
    from pulsar_advisor.stages.normalize import run as make_tables
    from pulsar_advisor.stages.verify import check
    from pulsar_advisor.stages.verify import run as compare

    captures = bool(connection.admin_url or connection.profile)
    refuse_together({"--snapshot": snapshot is not None, "--admin-url or --profile": captures})
    with _opened(plan, place, ledger) as (document, root, book):
        check(document, book)
        snapshot = capture_into(root, connection.options()) if captures else root.resolve(snapshot or LATEST)
        make_tables(spark_for(master, "verify", root, snapshot), root, snapshot)
        result = compare(document, book, root, snapshot)
    if json:
        print_json(result.as_document())
    else:
        for bundle in result.bundles:
            say(f"{_judgement(bundle.as_predicted)} {bundle.bundle} at {bundle.actual or 'no broker'}")
        for usage in result.brokers if result.usage_judged else ():
            say(
                f"{_judgement(usage.as_predicted)} {usage.broker} {_percent(usage.actual)}, "
                f"predicted {_percent(usage.predicted)}"
            )
        if not result.usage_judged:
            say("usage is not judged: the brokers still report figures from before the run")
    if result.deviations:
        raise Deviates(f"the cluster is not as predicted: {'; '.join(result.deviations)}")


def _judgement(as_predicted: bool) -> str:
    return "as predicted" if as_predicted else "DEVIATES    "


def _percent(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{ratio:.1%}"


@contextmanager
def _opened(plan: str, place: Place, ledger: LedgerPlace) -> Iterator[tuple[Plan, Root, Ledger]]:
    """What is known of a plan: itself, the root and the ledger of its cluster.

    Raises `Refused` for a plan of another cluster, and where there is no ledger: whoever proposed it has one.
    """
    from pulsar_advisor.execution.ledger import ledger_exists
    from pulsar_advisor.storage.plans import read_plan

    document, root = read_plan(plan), place.open()
    if document.cluster != place.cluster:
        raise Refused(f"{plan} is a plan of cluster '{document.cluster}', not of '{place.cluster}'")
    if not ledger_exists(url := ledger.url(root)):
        raise Refused(f"there is no ledger at {url}, so the plan has no recorded proposer: pass --ledger URL")
    with closing(ledger.open(root)) as book:
        yield document, root, book
