"""What a reader can do about a run that is active or stopped: go on with it where that is possible, or end it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import not_drained, undone
from pulsar_advisor.execution.ledger.plans import summary_of_plan
from pulsar_advisor.execution.ledger.rolls import roll_of_plan
from pulsar_advisor.execution.ledger.runs import is_held, is_parked, runs_of_plan
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.text.reader import reader


def way_on(ledger: Ledger, run: Run) -> str | None:
    """How to go on with an unfinished run, in words; None if it can only be ended, as its plan was undone."""
    if (roll := roll_of_plan(ledger, run.digest)) is not None:
        return reader().go_on_with_roll.format(digest=short(roll))
    plan = summary_of_plan(ledger, run.digest)
    if plan is not None and run.digest in undone(ledger, plan.cluster):
        return None
    return reader().resume_run.format(digest=short(run.digest))


def way_to_end(ledger: Ledger, run: Run) -> str:
    """How to end an unfinished run for good, in words."""
    if roll_of_plan(ledger, run.digest) is not None:
        return reader().end_roll
    return reader().end_run.format(digest=short(run.digest))


def ways(ledger: Ledger, run: Run) -> str:
    """Both, as far as there are."""
    return ", or ".join(filter(None, (way_on(ledger, run), way_to_end(ledger, run))))


def why_abandoned(ledger: Ledger, run: Run) -> str:
    """That nothing carries an active run out any more or waits in its place, and what to do; empty if something may."""
    if run.state != "active" or is_parked(run) or is_held(ledger, run):
        return ""
    silent_min = max(0, ledger.now_ms() - run.heartbeat_at_ms) // 60_000
    how = way_on(ledger, run)
    return (
        f"abandoned: process {run.pid} on {run.host}, which carried it out, was last active {silent_min} min ago; "
        f"{f'go on with it where it was begun ({how}), or ' if how else ''}{way_to_end(ledger, run)}"
    )


def concerns(ledger: Ledger, runs: Collection[Run]) -> Mapping[int, str]:
    """What a person should know of some of these runs beside their sentences, by the run's number."""
    abandoned = {run.id: why for run in runs if (why := why_abandoned(ledger, run))}
    return {**not_drained(ledger, runs), **abandoned}


def ended_runs(ledger: Ledger, digest: str, first: str) -> Sequence[Run]:
    """As `runs_of_plan`. Raises `Refused` if one is active; its message says what to do `first`."""
    runs = runs_of_plan(ledger, digest)
    if active := [run for run in runs if run.state == "active"]:
        raise Refused(f"{digest} is being carried out: {first}; if it crashed, {ways(ledger, active[0])}")
    return runs
