"""Carries a roll on, as far as it goes without a restart: confirms the last one, then drains the next broker.

Between two turns no process runs. The ledger holds a roll's whole state, so any shell or task can carry it on, also
after a crash: a turn whose plan was never begun is planned again, one that was begun is resumed, and the cluster shows
the outcome of each call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from pulsar_advisor.documents.apply_result import ApplyResult
from pulsar_advisor.execution.apply import apply_plan
from pulsar_advisor.execution.cluster.cluster_port import LOOK_AGAIN_S
from pulsar_advisor.execution.cluster.restart_port import LeadersView, RestartPort
from pulsar_advisor.execution.consent.approval import standing_approval
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.consent.turn import CarriedOnElsewhere, approve_as_roll, begin_turn
from pulsar_advisor.execution.ledger.pauses import plan_pause_requested
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.rolls import (
    ALL_RESTARTED,
    RollTurn,
    give_up,
    record_drained,
    record_end,
    record_restarted,
    require_no_other_roll,
    take_up,
)
from pulsar_advisor.execution.ledger.runs import abort_runs
from pulsar_advisor.execution.ledger.steps import has_open_call, is_left
from pulsar_advisor.execution.ledger.switches import settled_at_ms
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.roll.back import Drained, not_yet
from pulsar_advisor.execution.roll.progress import Progress, moves_in_all, progress_of
from pulsar_advisor.execution.roll.status import filling
from pulsar_advisor.execution.roll.steering import require_not_over, require_roll
from pulsar_advisor.execution.run.emptied import left_on
from pulsar_advisor.execution.run.guard.left_off import left_off, wait_until_settled
from pulsar_advisor.execution.run.guard.restoring import NOT_RESTORED, restore_what_was_left
from pulsar_advisor.execution.run.guard.settings import why_not_off
from pulsar_advisor.execution.run.options import ApplyOptions, Work
from pulsar_advisor.execution.run.preconditions import foreign, stale
from pulsar_advisor.execution.run.steering import left_open
from pulsar_advisor.model.errors import AdvisorError, Refused
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.questions.roll_order import leader_last

BACK_POLL_S: Final = 5.0
"""Interval at which a restarting broker is checked."""
ROUNDS: Final = 3
"""Maximum number of plans that one call carries out for a broker that gets new bundles while it is drained."""


class NotBackYet(Refused):
    """A restarted broker isn't healthy and listed yet, or the leader isn't up to date yet."""


PlanAnew = Callable[[Goal], tuple[Plan, str | None]]
"""Reads the cluster and makes a plan; also returns why it can't be computed again from its snapshot, if it can't."""


@dataclass(frozen=True, kw_only=True)
class Roll(Work):
    """A roll, and what is needed to carry it on."""

    plan: Plan
    cluster: RestartPort
    leaders_view: LeadersView
    plan_anew: PlanAnew
    policy: ApprovalPolicy

    @property
    def digest(self) -> str:
        """The digest of the approved plan."""
        return digest_of(self.plan)

    def look(self) -> Progress:
        """The roll's present progress."""
        return progress_of(self.ledger, self.plan)

    def why_stop(self) -> str | None:
        """Why its run should end after the steps in flight: an interruption, or somebody paused the roll."""
        return self.interruption() or plan_pause_requested(self.ledger, self.digest)

    @property
    def of_turn(self) -> Work:
        """The work of a turn: a pause of the roll interrupts it too."""
        return Work(self.ledger, self.cluster, self.progress, self.clock, self.why_stop)


def go_on(roll: Roll, wait_s: float = 0.0, anew: Person | None = None) -> ApplyResult | None:
    """Confirm a restart if one is announced, and drain the next broker; returns the result of the last run.

    `wait_s` is how long to wait until a broker is back, and known to the leader. With `anew`, a run that ended early is
    aborted in that person's name, and its turn is planned again. A roll that waits for a restart stays as it is until
    one is announced. Raises `NotBackYet`, `CarriedOnElsewhere`, and `Refused` if it may not go on.
    """
    try:
        _require_to_go_on(roll)
        mind_the_balancer(roll)  # restores what a dead process left off, which gives the roll up
        take_up(roll.ledger, roll.digest)
        if (seen := roll.look()).recorded.announced is not None:
            _confirm(roll, seen, wait_s)
        if not roll.look().left:
            record_end(roll.ledger, roll.digest, ALL_RESTARTED)
            _compare_releases(roll)
            return None
        result = None
        for _ in range(ROUNDS):
            seen = roll.look()
            if seen.state == "moving":
                raise CarriedOnElsewhere(f"{seen.whose_turn}, by another process: wait until it ends")
            if seen.state == "drained":
                _require_balancer_off(roll, seen)
                return result
            if seen.state == "moved" and _has_nothing_left(roll, seen):
                return result
            is_resumed = seen.state == "stopped" and anew is None and _can_be_resumed(roll, seen)
            result = _resumed(roll, seen) if is_resumed else None
            if result is None or _is_stuck(roll, seen, result):
                result = _begun(roll, roll.look(), anew or Person("its roll", short(roll.digest)))
            if result.outcome != "done":
                return result
        raise Refused(
            f"{roll.look().whose_turn}, and keeps getting bundles that clients use: find out why, then continue"
        )
    finally:
        mind_the_balancer(roll)


def _can_be_resumed(roll: Roll, seen: Progress) -> bool:
    """Whether the turn's run has a call to look at, or a step to send while its plan is fresh enough.

    Also if it only lost its process. If not, the turn is planned again.
    """
    if seen.run is None or not (seen.run.state == "active" or is_left(seen.steps[seen.run.id])):
        return False
    return has_open_call(seen.steps[seen.run.id]) or _stale(roll, recorded_plan(roll.ledger, seen.run.digest)) is None


def _stale(roll: Roll, plan: Plan) -> str | None:
    """Why a turn's plan is too old for another call, by the roll's approval; None if it isn't."""
    throttle = standing_approval(roll.ledger, roll.plan, roll.policy).throttle
    return stale(plan, throttle.max_age_s, roll.clock.now_ms(), roll.ledger.now_ms())


def _is_stuck(roll: Roll, before: Progress, result: ApplyResult) -> bool:
    """Whether resuming a turn's run sent nothing though nobody stopped it, and so would be in vain the next time too.

    Such as where the cluster no longer matches its next step.
    """
    if result.outcome != "partial" or result.run is None or roll.why_stop() is not None:
        return False
    now = roll.look()
    sent, sent_before = (sum(record.attempts for record in seen.steps[result.run].values()) for seen in (now, before))
    return sent == sent_before and not has_open_call(now.steps[result.run])


def _has_nothing_left(roll: Roll, seen: Progress) -> bool:
    """Whether the broker has no bundle left that clients use; if so, that is recorded."""
    broker = seen.begun.broker
    _settle_balancer(roll, seen)
    left = left_on(roll.cluster, [broker], roll.clock, roll.why_stop)
    if left.interrupted:
        raise Refused(f"{seen.whose_turn}; {left.interrupted}")
    if left.used:
        roll.progress(f"clients use {some_of(left.used)} on {broker}: planning its turn again")
        return False
    _require_balancer_off(roll, seen)
    if not record_drained(roll.ledger, roll.digest, broker, seen.recorded):
        to_do = reader().go_on_with_roll.format(digest=short(roll.digest))
        raise CarriedOnElsewhere(f"the roll was paused or carried on while {broker} was looked at: {to_do}")
    return True


def _settle_balancer(roll: Roll, seen: Progress) -> None:
    """Wait until no call of earlier runs can switch the balancer on again: nobody looks at it while a broker restarts.

    Raises `Refused` if the roll is to stop meanwhile.
    """
    settled_ms = settled_at_ms(roll.ledger, roll.plan.identity.cluster_name, roll.digest)
    reason = wait_until_settled(
        lambda: roll.ledger.now_ms() < settled_ms,
        "a call of an earlier run may still switch the cluster's own balancer on: waiting",
        roll.of_turn,
    )
    if reason:
        raise Refused(f"{seen.whose_turn}; {reason}")


def _require_balancer_off(roll: Roll, seen: Progress) -> None:
    """Raise `Refused` if the cluster's own balancer may fill the drained broker; then its turn is planned again."""
    if (why := why_not_off(roll.cluster, roll.clock)) is not None:
        give_up(roll.ledger, roll.digest)
        raise Refused(filling(seen.begun.broker, why, roll.digest))


def mind_the_balancer(roll: Roll) -> None:
    """Restore the cluster's own balancer unless the roll goes on. What can't be restored stays in the ledger."""
    name = roll.plan.identity.cluster_name
    try:
        if left_off(roll.ledger, name) and roll.cluster.cluster_name() == name:
            recorded = roll.look().recorded
            is_expected = recorded.ended is not None or recorded.pause is not None
            restore_what_was_left(roll, name, is_expected=is_expected)
    except AdvisorError as error:  # must not hide why the block ended
        roll.progress(f"{NOT_RESTORED}: {error}")


def _require_to_go_on(roll: Roll) -> None:
    require_roll(roll.ledger, roll.plan)
    seen = roll.look()
    require_not_over(seen.recorded, roll.digest)
    now_ms = roll.ledger.latest_ms()
    with roll.ledger.reading() as session:
        require_no_other_roll(roll.ledger, session, roll.plan.identity.cluster_name, roll.digest, now_ms)
    standing_approval(roll.ledger, roll.plan, roll.policy)
    # A roll may replace all brokers by ones with other names, which only each turn's own plan knows.
    brokers = frozenset(roll.plan.identity.broker_ids) if seen.recorded.turns else roll.cluster.active_brokers()
    if reason := foreign(roll.plan, roll.cluster.cluster_name(), brokers):
        raise Refused(reason)
    if seen.recorded.pause is not None:
        raise Refused(f"the roll is {seen.recorded.pause}: somebody has to continue it")


def _confirm(roll: Roll, seen: Progress, wait_s: float) -> None:
    """Wait until the broker is back, and record that, unless another process has.

    Raises `NotBackYet` after `wait_s`, `Refused` if the roll ended.
    """
    turn, person = seen.begun, seen.recorded.announced
    assert person is not None, "as it was announced"
    began_s, said, drained = roll.clock.monotonic_s(), "", _drained(roll, seen)
    deadline_s = began_s + wait_s
    is_back = False
    while True:
        recorded = roll.look().recorded
        require_not_over(recorded, roll.digest)
        if turn.broker in recorded.restarted:
            return
        waited_s = roll.clock.monotonic_s() - began_s
        now = replace(drained, since_s=drained.since_s + waited_s)
        if (why := not_yet(now, roll.cluster, roll.leaders_view)) is None:
            if is_back:
                break
            is_back = True  # by one look, which may be wrong
            roll.clock.sleep(LOOK_AGAIN_S)
            continue
        is_back = False
        if (reason := roll.why_stop()) or roll.clock.monotonic_s() >= deadline_s:
            raise NotBackYet(f"the roll can't continue yet: {why}{f' ({reason})' if reason else ''}; try again later")
        if why != said:
            roll.progress(f"waiting: {why}")
            said = why
        roll.clock.sleep(BACK_POLL_S)
    _end_stopped_run(roll, seen, person)
    proof = "" if turn.started_at_ms is None else ", and its process is another one"
    record_restarted(roll.ledger, roll.digest, turn.broker, f"said by {person}{proof}")
    roll.progress(f"{turn.broker} is back")


def _compare_releases(roll: Roll) -> None:
    """Say which brokers run which release, unless all run one: a broker may have come back on its old one."""
    with suppress(AdvisorError):  # the roll is over, whether or not every broker can be asked
        brokers = roll.cluster.active_brokers().intersection(roll.look().recorded.restarted)
        release_of = {broker: roll.cluster.release(broker) for broker in sorted(brokers)}
        releases = sorted({*release_of.values()})
        if len(releases) > 1:
            each = (f"{one} on {some_of([it for it, of in release_of.items() if of == one])}" for one in releases)
            roll.progress(f"every broker was restarted, but not on one release: {'; '.join(each)}")


def _end_stopped_run(roll: Roll, seen: Progress, person: Person) -> None:
    """Abort a run that ended early, in a person's name."""
    if seen.state == "stopped" and seen.run is not None:
        ended = abort_runs(roll.ledger, seen.run.digest, person, seen.run.hold)
        for line in left_open(roll.ledger, ended):
            roll.progress(line)


def _drained(roll: Roll, seen: Progress) -> Drained:
    """What all plans of the turn did; there are several if the broker got new bundles while it was drained."""
    plans = {turn.plan for turn in seen.recorded.turns if turn.broker == seen.begun.broker}
    destinations: dict[str, str] = {}
    since_s = float("inf")
    for run in (run for run in seen.runs if run.digest in plans):
        confirmed = {name for name, record in seen.steps[run.id].items() if record.is_confirmed}
        for step in recorded_plan(roll.ledger, run.digest).steps:
            if step.id in confirmed and step.destination:
                destinations[step.bundle_name] = step.destination
        now_ms = roll.ledger.now_ms()
        since_s = min(since_s, (now_ms - (run.ended_at_ms or now_ms)) / 1000)
    return Drained(seen.begun, destinations, since_s)


def _resumed(roll: Roll, seen: Progress) -> ApplyResult:
    """Resume a turn's run. Raises `Refused` if its open call stays open, and its plan is too old to send it again."""
    assert seen.run is not None, "as it can be resumed"
    roll.progress(f"resuming the turn of {seen.begun.broker}")
    plan = recorded_plan(roll.ledger, seen.run.digest)
    approve_as_roll(roll.ledger, roll.plan, plan, roll.policy)
    result = _applied(roll, plan, seen, resume=True)
    if result.outcome == "partial" and _stale(roll, plan) and has_open_call(roll.look().steps[seen.run.id]):
        raise Refused(f"{result.sentence}; {reader().plan_turn_again.format(digest=short(roll.digest))}")
    return result


def _begun(roll: Roll, seen: Progress, planned_by: Person) -> ApplyResult:
    """Plan a turn and carry it out; a run that it had before ends for good once there is a plan."""
    left = leader_last(seen.left, roll.cluster.leader())
    if absent := sorted({*left} - roll.cluster.active_brokers()):
        are, them = ("is", "it") if len(absent) == 1 else ("are", "them")
        todo = f"bring {them} back first, or end the roll and make a new one"
        raise Refused(f"{some_of(absent)} {are} not active: {todo}")
    plan, not_computed_here = _plan_of_turn(roll, seen, left)
    turn = RollTurn(
        broker=left[0],
        plan=digest_of(plan),
        started_at_ms=roll.cluster.started_at_ms(left[0]),
        moves=len(plan.executable_steps),
        moves_in_all=moves_in_all(plan),
    )
    _end_stopped_run(roll, roll.look(), planned_by)
    begin_turn(
        roll.ledger,
        roll.plan,
        plan,
        turn,
        seen=seen.recorded,
        left=left,
        moved=seen.moved,
        policy=roll.policy,
        not_computed_here=not_computed_here,
    )
    roll.progress(f"the turn of {left[0]}: {short(digest_of(plan))}")
    return _applied(roll, plan, seen, resume=False)  # also without a move: the run switches the balancer off


def _plan_of_turn(roll: Roll, seen: Progress, left: tuple[str, ...]) -> tuple[Plan, str | None]:
    """For the first turn the approved plan, if it is fresh and no step was tried; otherwise a new plan."""
    goal = roll.plan.goal
    assert goal is not None, "as a roll has one"
    if _stale(roll, roll.plan) is None and not seen.runs and goal.brokers == left:
        return roll.plan, None
    return roll.plan_anew(Goal(ROLL, left, goal.target_ratio, goal.ceiling_ratio, goal.onto))


def _applied(roll: Roll, plan: Plan, seen: Progress, *, resume: bool) -> ApplyResult:
    before = frozenset(run.id for run in seen.runs if run.digest != digest_of(plan))
    options = ApplyOptions(policy=roll.policy, resume=resume, turns_before=before)
    return apply_plan(plan, options, roll.of_turn)
