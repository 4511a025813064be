"""What people do to a roll: say that a broker has been restarted, pause it, or end it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pulsar_advisor.execution.consent.approval import withdraw
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import request_pause_of_plan
from pulsar_advisor.execution.ledger.rolls import (
    RecordedRoll,
    record_announced,
    record_end,
    recorded_roll,
    roll_of_plan,
    runs_of_roll,
)
from pulsar_advisor.execution.ledger.runs import abort_runs
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.roll.progress import progress_of
from pulsar_advisor.execution.run.steering import left_open
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.planning.kinds.goal import brokers_in_order


def announce(ledger: Ledger, plan: Plan, name: str, person: Person) -> None:
    """Record that a person, or their automation, says that a broker (as an operator names it) has been restarted.

    The roll goes on once the cluster shows it. Raises `Refused` if it is no roll, or that broker isn't drained in it.
    """
    require_roll(ledger, plan)
    seen = progress_of(ledger, plan)
    require_not_over(seen.recorded, digest_of(plan))
    [broker] = brokers_in_order([name], (*seen.recorded.restarted, *seen.left), of="the roll")
    if broker in seen.recorded.restarted:
        raise Refused(f"{broker} has had its turn, and its restart is recorded: {seen.whose_turn}")
    if seen.turn is None or seen.turn.broker != broker or seen.state not in ("drained", "stopped"):
        raise Refused(
            f"{broker} was not drained: {seen.whose_turn}. If you restarted it before its turn, it will be drained "
            "and restarted again; or end the roll and make a new one without it"
        )
    if seen.recorded.announced is not None or record_announced(ledger, digest_of(plan), broker, person, seen.recorded):
        return
    now = recorded_roll(ledger, digest_of(plan))
    is_announced = now.announced is not None and now.turn is not None and now.turn.broker == broker
    if not is_announced and broker not in now.restarted:
        raise Refused(f"somebody else has just carried the roll on, or paused it: see whether {broker} is drained")


def pause(ledger: Ledger, plan: Plan, person: Person) -> None:
    """Have a roll stop after the moves in flight, and begin no turn until the pause is lifted.

    Raises `Refused` if it is over.
    """
    require_not_over(recorded_roll(ledger, digest_of(plan)), digest_of(plan))
    request_pause_of_plan(ledger, digest_of(plan), person)


def end(ledger: Ledger, plan: Plan, person: Person, comment: str = "") -> Sequence[str]:
    """End a roll for good, with its runs and its approval; return what to check, see `left_open`.

    `mind_the_balancer` restores the cluster's own balancer. Raises `Refused` if the roll is over, unless a process died
    as it ended it.
    """
    digest = digest_of(plan)
    if not any(run.is_unfinished for run in runs_of_roll(ledger, digest)):
        require_not_over(recorded_roll(ledger, digest), digest)
    record_end(ledger, digest, f"ended by {person}")
    with suppress(Refused):  # it has expired, or was withdrawn before
        withdraw(ledger, digest, person, comment)
    # Last: from here on no turn begins, and no run of one.
    turns = dict.fromkeys(run.digest for run in runs_of_roll(ledger, digest))
    return [line for turn in turns for line in left_open(ledger, abort_runs(ledger, turn, person))]


def require_not_over(recorded: RecordedRoll, digest: str) -> None:
    """Raise `Refused` if the roll with this digest has ended."""
    if recorded.ended is not None:
        raise Refused(f"the roll {digest} has ended: {recorded.ended}. For what is left, make a new one")


def require_roll(ledger: Ledger, plan: Plan) -> None:
    """Raise `Refused` for a plan that isn't a roll, or is only one of its turns."""
    digest = digest_of(plan)
    if plan.shedder != ROLL:
        raise Refused(f"{digest} is not a roll ({plan.title}): {reader().apply_plan.format(digest=short(digest))}")
    if (of := roll_of_plan(ledger, digest)) not in (None, digest):
        raise Refused(f"{digest} is a turn of the roll {of}: name the roll")
