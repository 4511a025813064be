"""The verbs that act on a plan: approve, withdraw, apply, export, undo, verify."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pulsar_advisor.admin.home import with_home
from pulsar_advisor.cli.options import (
    RESTORE,
    Comment,
    Connection,
    Flag,
    HeadsPlaces,
    Json,
    LedgerPlace,
    Master,
    Place,
    PlanName,
    PolicyFile,
    Throttle,
    YourName,
    command,
)
from pulsar_advisor.cli.output import (
    GOAL_NOT_REACHED,
    Ended,
    log,
    log_lines_of,
    print_json,
    progress,
    result_of,
    say,
    say_lines,
    timed,
)
from pulsar_advisor.cli.rendering import apply_lines, plan_lines, verify_lines
from pulsar_advisor.cli.signals import deferred_signals
from pulsar_advisor.cli.stages import capture_into
from pulsar_advisor.cli.starting import spark_for
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.execution.person import person_on_command_line
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE, ApplyThrottle
from pulsar_advisor.model.bounds import duration, next_time, seconds
from pulsar_advisor.model.errors import AdvisorError, BalancerStillOff, Deviates, Refused, StorageError, UsageError
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.reporting.figures import moment
from pulsar_advisor.storage.root import LATEST, Root

if TYPE_CHECKING:
    from pulsar_advisor.admin.connection import AdminConnection
    from pulsar_advisor.execution.ledger.heads import Keeper
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.model.plans.plan import Plan
    from pulsar_advisor.planning.plans.consent import ConsentName


def approve(
    plan: PlanName,
    /,
    *,
    as_: YourName | None = None,
    automatic: Annotated[bool, Flag] = False,
    digest: str | None = None,
    place: Place = Place(),
    splits: Annotated[bool, Flag] = False,
    accept_worse: Annotated[bool, Flag] = False,
    accept_low_confidence: Annotated[bool, Flag] = False,
    expires: str | None = None,
    comment: Comment = "",
    throttle: Throttle = Throttle(),
    policy: PolicyFile = PolicyFile(),
    ledger: LedgerPlace = LedgerPlace(),
    json: Json = False,
) -> None:
    """Approve exactly one plan, and how carefully it is carried out: shows both, and records the plan's whole digest.

    Parameters
    ----------
    digest
        The plan's whole digest, to be sure: any other plan is refused.
    automatic
        Approve it in the policy's name if it meets every criterion of the policy; if not, say which ones it fails.
    splits
        Approve its splits too: they can't be undone.
    accept_worse
        Approve it although it is predicted to make things worse.
    accept_low_confidence
        Approve its steps of low confidence too.
    expires
        How long the approval holds: 90s, 30m, 4h, 1d. By default 4h, for a roll 1d.
    """
    refuse_together({"--as": as_ is not None, "--automatic": automatic})
    if as_ is None and not automatic:
        raise UsageError("who approves? Give --as NAME, or --automatic for the approval policy to decide")
    consents: dict[ConsentName, bool] = {
        "splits": splits,
        "worse": accept_worse,
        "low_confidence": accept_low_confidence,
    }
    with opened_plan(plan, place, ledger) as (document, root, book):
        from pulsar_advisor.execution.consent.approval import carried_out_before, default_validity_s
        from pulsar_advisor.execution.run.preconditions import stale
        from pulsar_advisor.model.plans.plan import digest_of, short
        from pulsar_advisor.stages.approve import run as record

        _mind_the_guard(document, book, command(RESTORE, place, ledger))
        outdated = stale(document, throttle.changes().get("max_age_s", DEFAULT_THROTTLE.max_age_s), book.now_ms())
        before = carried_out_before(book, digest_of(document))
        valid_for_s = default_validity_s(document) if expires is None else seconds(expires)
        approval, not_computed_here = record(
            root,
            book,
            document,
            digest=digest or digest_of(document),
            approver=None if as_ is None else person_on_command_line(as_),
            policy=policy.read(),
            consents=[name for name, is_given in consents.items() if is_given],
            throttle=ApplyThrottle(**throttle.changes()),
            valid_for_s=valid_for_s,
            comment=comment,
        )
    if json:
        from pulsar_advisor.execution.consent.approval import Approved

        print_json(
            Approved(
                digest=approval.digest,
                approver=approval.approver,
                throttle=approval.throttle,
                expires_at_ms=approval.expires_at_ms,
                not_computed_here=not_computed_here,
            )
        )
    else:
        say_lines(plan_lines(document, approval.throttle, before))
        if not_computed_here:
            say(f"- not computed here: {not_computed_here}")
        say_lines(f"- {limit}" for limit in approval.throttle.sentences())
        lasts = f"for {duration(valid_for_s)}, until {moment(approval.expires_at_ms)}"
        say(f"approved by {approval.approver} {lasts}: {approval.digest}")
        digits = short(approval.digest)
        then = ("roll", "continue", digits) if document.shedder == ROLL else ("apply", digits, "--dry-run")
        if outdated and document.shedder != ROLL:  # the turns of a roll are planned anew
            say(f"it can't be applied: {outdated}")
        else:
            say(f"next: {command(then, place, policy, ledger)}")


def withdraw(
    plan: PlanName,
    /,
    *,
    as_: YourName,
    place: Place = Place(),
    comment: Comment = "",
    ledger: LedgerPlace = LedgerPlace(),
    json: Json = False,
) -> None:
    """Withdraw the approval of a plan; a run that is under way stops before its next call."""
    with opened_plan(plan, place, ledger) as (document, _, book):
        from pulsar_advisor.execution.consent.approval import withdraw as take_back
        from pulsar_advisor.model.plans.plan import digest_of

        digest = digest_of(document)
        number = take_back(book, digest, person_on_command_line(as_), comment)
        # A roll that goes on no more has left the balancer off.
        is_off = _mind_the_guard(document, book, command(RESTORE, place, ledger))
    with result_of(BalancerStillOff.exit_code if is_off else 0):
        if json:
            from pulsar_advisor.documents.receipts import Withdrawn

            print_json(Withdrawn(digest=digest, withdrawn=number))
        else:
            say(f"withdrawn: {count(number, 'approval')} of {digest}")


def apply(
    plan: PlanName,
    /,
    *,
    place: Place = Place(),
    connection: Connection = Connection(),
    throttle: Throttle = Throttle(),
    policy: PolicyFile = PolicyFile(),
    probe_topic: str | None = None,
    probe_gap: str = "5s",
    until: str | None = None,
    dry_run: Annotated[bool, Flag] = False,
    resume: Annotated[bool, Flag] = False,
    pause: Annotated[bool, Flag] = False,
    abort: Annotated[bool, Flag] = False,
    as_: Annotated[str | None, Parameter(name="--as")] = None,
    ledger: LedgerPlace = LedgerPlace(),
    heads: HeadsPlaces = HeadsPlaces(),
    json: Json = False,
    log_json: Annotated[bool, Flag] = False,
) -> None:
    """Carry out an approved plan: throttled, verified step by step, resumable.

    Parameters
    ----------
    probe_topic
        Publish a message to this topic (its complete name, kept for this purpose) before each call or wave of calls;
        needs --service-url. A failure ends the run.
    probe_gap
        How long the acknowledgement of such a message may take.
    until
        Send nothing after this time of day, HH:MM by this machine's clock. The run ends once its steps in flight are
        done; go on with --resume.
    dry_run
        Check everything and show what would be sent; send nothing.
    resume
        Go on with a run that ended early, from what the cluster shows.
    pause
        End the run that is under way, in any shell or task, once its steps in flight are done; go on with --resume.
    abort
        End a run for good; a process that still holds it stops before its next call.
    as_
        Your name, for the ledger (with --pause or --abort).
    log_json
        Each event of the run as a line of JSON on stderr, instead of the progress.
    """
    for other, given in {"--resume": resume, "--dry-run": dry_run, "--pause": pause}.items():
        refuse_together({"--abort": abort, other: given})
    for other, given in {"--resume": resume, "--dry-run": dry_run}.items():
        refuse_together({"--pause": pause, other: given})

    reach, restore = partial(connection.admin, place), command(RESTORE, place, connection, ledger)
    keepers = () if dry_run else heads.keepers(place)
    with opened_plan(plan, place, ledger) as (document, _, book), head_kept(book, keepers):
        from pulsar_advisor.execution.cluster.probe import PublishProbe
        from pulsar_advisor.execution.ledger.runs import run_by_id
        from pulsar_advisor.execution.run.options import ApplyOptions
        from pulsar_advisor.execution.run.preconditions import NEW_PLAN
        from pulsar_advisor.execution.run.steering import before_resuming
        from pulsar_advisor.execution.telemetry import LOGGER
        from pulsar_advisor.model.plans.plan import short
        from pulsar_advisor.planning.kinds.goal_outcome import FALLS_SHORT, outcome_sentence
        from pulsar_advisor.stages.apply import run as carry_out

        if abort or pause:
            is_reached = connection.is_given or place.profile is not None
            try:
                _end_run(document, book, as_, for_good=abort, json=json)
            finally:  # a run that has ended may have left the balancer off too
                is_off = _mind_the_guard(document, book, restore, reach if is_reached else None)
            if is_off:
                raise Ended(BalancerStillOff.exit_code)
            return
        options = ApplyOptions(
            throttle_changes=throttle.changes(),
            policy=policy.read(),
            dry_run=dry_run,
            resume=resume,
            # The zone comes last: if the clocks change tonight, the offset is another tomorrow.
            until=None if until is None else next_time(until, datetime.now()).astimezone(),
        )
        admin, probe = reach(), None
        if probe_topic is not None:
            service_url = connection.options(place).service_url
            if service_url is None:
                raise UsageError(
                    "--probe-topic needs the brokers' binary address: give --service-url pulsar://broker:6650"
                )
            probe = PublishProbe(service_url, probe_topic, seconds(probe_gap))
        if log_json:
            log_lines_of(LOGGER)
        with deferred_signals() as interruption:
            result = carry_out(document, book, admin, options, _silent if log_json else progress, interruption, probe)
        can_go_on = result.is_left and result.run is not None and run_by_id(book, result.run).state == "stopped"
        first = before_resuming(document, book, options.policy) if can_go_on else ""
    falls_short = result.outcome in ("done", "nothing_to_do") and result.goal_outcome in FALLS_SHORT
    with result_of(result.exit_code or (GOAL_NOT_REACHED if falls_short else 0)):
        if json:
            print_json(result)
        else:
            say_lines(apply_lines(result, restore))
            if can_go_on:
                on = command(
                    ("apply", short(result.digest), "--resume"), place, connection, policy, ledger, heads.shown
                )
                say(f"to resume{first}: {on}")
            elif result.outcome == "partial" and not result.is_left:
                say(f"to go on: {NEW_PLAN}")
            if result.undoable_steps:
                back = command(("undo", short(result.digest), "--as", "NAME"), place, connection, ledger)
                say(f"to undo: {back}")
            say(f"ledger: {result.ledger_head}")
        if falls_short:
            log(outcome_sentence(result.goal_outcome, document.title))


def _end_run(plan: Plan, ledger: Ledger, name: str | None, *, for_good: bool, json: bool) -> None:
    """End the plan's run in a person's name, for good or until it is resumed, and say what became of it."""
    from pulsar_advisor.documents.receipts import EndedRun
    from pulsar_advisor.execution.ledger.runs import is_held
    from pulsar_advisor.execution.run.steering import abort, left_open, pause

    runs = (abort if for_good else pause)(ledger, plan, person_on_command_line(name))
    if json:
        print_json([EndedRun(run=run.id, digest=run.digest, state=run.state) for run in runs])
    else:
        for run in runs:
            at_work = "ends once its steps in flight are done"
            how = "ended" if for_good else at_work if is_held(ledger, run) else "has no process: --resume continues it"
            say(f"run {run.id} of {run.digest} {how}")
    if for_good:
        for line in left_open(ledger, runs):
            log(line)


def export(
    plan: PlanName,
    /,
    *,
    format: Literal["pulsar-admin", "curl", "json"] = "pulsar-admin",
    output: Annotated[Path | None, Parameter(name=("-o", "--output"))] = None,
    place: Place = Place(),
    ledger: LedgerPlace = LedgerPlace(),
) -> None:
    """Write a plan as a script to read and run step by step, without the advisor: its calls, with a check around each.

    Parameters
    ----------
    format
        A script of pulsar-admin commands, a script of curl commands, or the calls as JSON.
    output
        File to write, else stdout.
    """
    from upath import UPath

    from pulsar_advisor.execution.by_hand import exported, recorded_against
    from pulsar_advisor.execution.ledger.opening import ledger_if_any
    from pulsar_advisor.storage.files import write_output
    from pulsar_advisor.storage.plans import open_plan

    document, recorded = open_plan(place.open(), plan), ""
    try:
        with ledger_if_any(ledger.url_if_any(place)) as book:
            recorded = "" if book is None else recorded_against(book, document)
    except StorageError as error:  # who exports a plan may have no access to the ledger
        log(f"can't read what became of the plan: {error}")
    text = exported(document, format, recorded)
    if recorded:
        log(f"note: {recorded}")
    if output is None:
        say(text.rstrip("\n"))
        return
    file = with_home(output)
    write_output(UPath(file), (text.encode(),))
    log(f"written: {file}")


def undo(
    plan: PlanName,
    /,
    *,
    as_: Annotated[str, Parameter(name="--as")],
    place: Place = Place(),
    connection: Connection = Connection(),
    ledger: LedgerPlace = LedgerPlace(),
    json: Json = False,
) -> None:
    """Write a plan that moves back what a run of this plan moved, for somebody else to approve. Sends nothing.

    It is made from the steps that the ledger shows as confirmed and from the owners and boundaries that the brokers
    show now, so it also works after a run that ended half-way.

    Parameters
    ----------
    as_
        Your name, recorded in the ledger as proposer.
    """
    with opened_plan(plan, place, ledger) as (document, root, book):
        from pulsar_advisor.execution.consent.approval import propose
        from pulsar_advisor.planning.plans.consent import approve_words
        from pulsar_advisor.stages.derive import why_not_computed_here
        from pulsar_advisor.stages.undo import run as make_plan

        _name_other_turns(document, book)
        back, written = make_plan(document, book, root, connection.admin(place))
        propose(book, back, person_on_command_line(as_), why_not_computed_here(root, book, back))
    if json:
        from pulsar_advisor.documents.receipts import ProposedUndo

        executable = tuple(step.id for step in back.steps if step.executable)
        print_json(ProposedUndo(plan=written.file, digest=written.digest, executable_steps=executable))
        return
    for step in back.steps:
        move = f"{step.source} → {step.destination}" if step.executable else f"left out: {step.not_executable_because}"
        say(f"{step.id} {step.bundle_name} {move}")
    if not back.executable_steps:
        say("no bundle can be moved back: there is nothing to approve")
        return
    say("for somebody else to approve, from another account:")
    say(command(approve_words(back), place, ledger))


def verify(
    plan: PlanName,
    /,
    *,
    place: Place = Place(),
    snapshot: str | None = None,
    connection: Connection = Connection(),
    ledger: LedgerPlace = LedgerPlace(),
    master: Master = "local[*]",
    json: Json = False,
) -> None:
    """Compare the cluster with a plan that was carried out; ends with exit code 5 if they differ.

    Parameters
    ----------
    snapshot
        A snapshot taken since; by default the latest. With --admin-url, or --profile and no --snapshot, one is taken
        now instead.
    """
    refuse_together({"--snapshot": snapshot is not None, "a connection (--admin-url)": connection.is_given})
    captures = connection.is_given or (place.profile is not None and snapshot is None)

    reach, restore = partial(connection.admin, place), command(RESTORE, place, connection, ledger)
    with opened_plan(plan, place, ledger) as (document, root, book):
        from pulsar_advisor.stages.normalize import run as make_tables
        from pulsar_advisor.stages.verify import check, check_snapshot
        from pulsar_advisor.stages.verify import run as compare

        _name_other_turns(document, book)
        check(document, book)
        if captures:
            # Nothing is compared with what brokers publish.
            snapshot = capture_into(root, connection.options(place, listen_s=0))
            ledger.seal(place, snapshot, "capture")
        else:
            snapshot = root.resolve(LATEST if snapshot is None else snapshot)
            check_snapshot(document, book, root, snapshot)
        with timed("normalize"), ledger.sealing(place, snapshot, "normalize"):
            make_tables(spark_for(master, "verify", root, snapshot), root, snapshot)
        _mind_the_guard(document, book, restore, reach if captures else None)
        result = compare(document, book, root, snapshot)
    more = f"; and {len(result.deviations) - 1} more" if len(result.deviations) > 1 else ""
    differs = f"the cluster is not as predicted: {result.deviations[0]}{more}" if result.deviations else ""
    with result_of(Deviates(differs) if differs else 0):
        print_json(result) if json else say_lines([*verify_lines(result), f"ledger: {result.ledger_head}"])


def _name_other_turns(plan: Plan, ledger: Ledger) -> None:
    """Say that the plan of a roll moved its first broker's bundles at most, and which plans moved the others'."""
    from pulsar_advisor.execution.ledger.rolls import recorded_roll
    from pulsar_advisor.model.plans.plan import digest_of, short

    turns = recorded_roll(ledger, digest_of(plan)).turns
    if others := [f"{turn.broker} {short(turn.plan)}" for turn in turns if turn.plan not in (None, digest_of(plan))]:
        log(f"this is only the roll's own plan; each other turn has a plan of its own: {', '.join(others)}")


def _mind_the_guard(
    plan: Plan, ledger: Ledger, restore: str, reach: Callable[[], AdminConnection] | None = None
) -> bool:
    """Restore what a crashed run left switched off on the plan's cluster, or warn and name the command that restores.

    Whether anything is still off.
    """
    from pulsar_advisor.execution.run.guard import left_off, warning
    from pulsar_advisor.stages.apply import restore_what_was_left

    left = left_off(ledger, plan.identity.cluster_name)
    if left and reach is not None:
        restore_what_was_left(plan.identity.cluster_name, ledger, reach(), log)
        return bool(left_off(ledger, plan.identity.cluster_name))
    for switch in left:
        log(f"{warning(switch, plan.identity.cluster_name)}: `{restore}` restores it")
    return bool(left)


@contextmanager
def head_kept(ledger: Ledger, keepers: Sequence[Keeper]) -> Iterator[None]:
    """However the block ends, the ledger's head is handed over afterwards; a failure of that is logged."""
    from pulsar_advisor.execution.ledger.heads import keep

    try:
        yield
    finally:
        try:
            failures = keep(ledger.head(), keepers)
        except AdvisorError as error:
            failures = [str(error)]
        for failure in failures:
            log(failure)


def _silent(_line: str) -> None:
    """Discard progress lines: the run's events are logged instead."""


@contextmanager
def opened_plan(plan: str, place: Place, ledger: LedgerPlace) -> Iterator[tuple[Plan, Root, Ledger]]:
    """The plan, the root, and the ledger of the plan's cluster, which has the plan even if its file is gone.

    Raises `Refused` if the plan is for another cluster or there is no ledger: proposing a plan creates one.
    """
    from pulsar_advisor.execution.ledger.plans import only_plan
    from pulsar_advisor.storage.plans import PlanNotFound, open_plan

    root = place.open()
    try:
        document = open_plan(root, plan)
    except PlanNotFound:
        with ledger.if_any(place) as book:
            recorded = None if book is None else only_plan(book, root.cluster, plan)
        if recorded is None:
            raise
        document = recorded
    if document.cluster != root.cluster:
        raise Refused(f"plan {plan} is for cluster '{document.cluster}', not '{root.cluster}'")
    with ledger.if_any(place) as book:
        if book is None:
            raise Refused(
                f"there is no ledger at {ledger.url(place)}, so the plan has no recorded proposer: pass --ledger URL"
            )
        yield document, root, book
