"""The verb that carries a plan out: apply."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pulsar_advisor.cli.opened_plans import head_kept, mind_the_guard, opened_plan
from pulsar_advisor.cli.options import Flag, Json, PlanName, Throttle
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
)
from pulsar_advisor.cli.places import HeadsPlaces, ReachToWrite, command
from pulsar_advisor.cli.rendering import apply_lines
from pulsar_advisor.cli.signals import deferred_signals
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.execution.person import person_on_command_line
from pulsar_advisor.model.bounds import next_time, seconds
from pulsar_advisor.model.errors import BalancerStillOff, UsageError

if TYPE_CHECKING:
    from pulsar_advisor.execution.cluster.probe import PublishProbe
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.model.plans.plan import Plan


def apply(
    plan: PlanName,
    /,
    *,
    reach: ReachToWrite = ReachToWrite(),
    throttle: Throttle = Throttle(),
    probe_topic: str | None = None,
    probe_gap: str = "5s",
    until: str | None = None,
    dry_run: Annotated[bool, Flag] = False,
    resume: Annotated[bool, Flag] = False,
    pause: Annotated[bool, Flag] = False,
    abort: Annotated[bool, Flag] = False,
    as_: Annotated[str | None, Parameter(name="--as")] = None,
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

    keepers = () if dry_run else heads.keepers(reach.place)
    with opened_plan(plan, reach.place) as (document, _, book), head_kept(book, keepers):
        from pulsar_advisor.execution.ledger.runs import run_by_id
        from pulsar_advisor.execution.run.options import ApplyOptions
        from pulsar_advisor.execution.run.preconditions import NEW_PLAN
        from pulsar_advisor.execution.run.steering import before_resuming
        from pulsar_advisor.execution.telemetry import LOGGER
        from pulsar_advisor.model.plans.names import short
        from pulsar_advisor.planning.kinds.goal_outcome import FALLS_SHORT, outcome_sentence
        from pulsar_advisor.stages.apply import run as carry_out

        if abort or pause:
            try:
                _end_run(document, book, as_, for_good=abort, json=json)
            finally:  # a run that has ended may have left the balancer off too
                is_off = mind_the_guard(document, book, reach.restore, reach.admin if reach.is_named else None)
            if is_off:
                raise Ended(BalancerStillOff.exit_code)
            return
        options = ApplyOptions(
            throttle_changes=throttle.changes(),
            policy=reach.policy.read(),
            dry_run=dry_run,
            resume=resume,
            # The zone comes last: if the clocks change tonight, the offset is another tomorrow.
            until=None if until is None else next_time(until, datetime.now()).astimezone(),  # noqa: DTZ005
        )
        admin = reach.admin()
        probe = None if probe_topic is None else _probe(reach.options().service_url, probe_topic, probe_gap)
        if log_json:
            log_lines_of(LOGGER)
        with deferred_signals() as interruption:
            result = carry_out(document, book, admin, options, _silent if log_json else progress, interruption, probe)
        can_go_on = result.is_left and result.run is not None and run_by_id(book, result.run).state == "stopped"
        first = before_resuming(document, book, options.policy, result) if can_go_on else ""
    falls_short = result.outcome in ("done", "nothing_to_do") and result.goal_outcome in FALLS_SHORT
    with result_of(result.exit_code or (GOAL_NOT_REACHED if falls_short else 0)):
        if json:
            print_json(result)
        else:
            say_lines(apply_lines(result, reach.restore))
            if can_go_on:
                words = ("apply", short(result.digest), "--resume")
                say(f"to resume{first}: {command(words, reach.place, reach.connection, reach.policy, heads.shown)}")
            elif result.outcome == "partial" and not result.is_left:
                say(f"to go on: {NEW_PLAN}")
            if result.undoable_steps:
                back = command(("undo", short(result.digest), "--as", "NAME"), reach.place, reach.connection)
                say(f"to undo: {back}")
            say(f"ledger: {result.ledger_head}")
        if falls_short:
            log(outcome_sentence(result.goal_outcome, document.title))


def _probe(service_url: str | None, topic: str, gap: str) -> PublishProbe:
    from pulsar_advisor.execution.cluster.probe import PublishProbe

    if service_url is None:
        raise UsageError("--probe-topic needs the brokers' binary address: give --service-url pulsar://broker:6650")
    return PublishProbe(service_url, topic, seconds(gap))


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
            if for_good:
                how = "ended"
            elif is_held(ledger, run):
                how = "ends once its steps in flight are done"
            else:
                how = "has no process: --resume continues it"
            say(f"run {run.id} of {run.digest} {how}")
    if for_good:
        for line in left_open(ledger, runs):
            log(line)


def _silent(_line: str) -> None:
    """Discard progress lines: the run's events are logged instead."""
