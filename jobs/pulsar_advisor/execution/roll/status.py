"""A roll's progress as a document: which broker is next, what is left, and how long that takes."""

from __future__ import annotations

from collections import Counter

from pulsar_advisor.documents.roll_status import RollStatus, ShownState, TurnStatus
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import events_of
from pulsar_advisor.execution.ledger.pauses import PAUSE_LIFTED
from pulsar_advisor.execution.ledger.switches import switched_off
from pulsar_advisor.execution.roll.progress import Progress, progress_of
from pulsar_advisor.execution.run.guard.left_off import left_off
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE, ApplyThrottle
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.planning.plans.consent import approve_words


def status_of(ledger: Ledger, roll: Plan) -> RollStatus:
    """The status of a roll, from the ledger."""
    seen, digest = progress_of(ledger, roll), digest_of(roll)
    standing = [row for row in approvals_of_plan(ledger, digest) if row.is_in_force(ledger.latest_ms())]
    throttle = standing[-1].throttle if standing else DEFAULT_THROTTLE
    name = roll.identity.cluster_name
    left = tuple(switch.setting for switch in left_off(ledger, name))
    to_begin = sum(broker != (seen.turn.broker if seen.turn else None) for broker in seen.left)
    is_over = seen.recorded.ended is not None
    return RollStatus(
        digest=digest,
        cluster=roll.cluster,
        turns=_turns(seen),
        restart=_to_restart(seen) if standing else None,
        sentence=_sentence(seen, roll, approved=bool(standing)),
        moves=sum(seen.moved.values()),
        moves_left=0 if is_over else seen.moves_left,
        moves_take_s=0.0 if is_over else _moves_take_s(throttle, to_begin, seen.moves_left),
        approved_until_ms=standing[-1].expires_at_ms if standing else None,
        balancer_off=tuple(one.setting for one in switched_off(ledger, name) if one.setting not in left),
        still_off=left,
        ended=seen.recorded.ended,
        announced=None if seen.recorded.announced is None else seen.recorded.announced.name,
        paused=seen.recorded.pause,
        given_up=seen.recorded.is_given_up,
        ledger_head=str(ledger.head()),
    )


def but_filling(status: RollStatus, why: str) -> RollStatus:
    """The status of a roll whose drained broker is not to be restarted, as the balancer may have filled it again."""
    assert status.restart is not None, "or else none is drained"
    return status.model_copy(update={"restart": None, "sentence": filling(status.restart, why, status.digest)})


def drained_by(status: RollStatus) -> str | None:
    """The digest of the plan that drained the broker which waits for its restart; None without one."""
    return next((turn.plan for turn in status.turns if turn.broker == status.restart), None)


def filling(broker: str, why: str, digest: str) -> str:
    """That a drained broker of the roll with this digest is not to be restarted, and what to do."""
    again = reader().drain_again.format(digest=short(digest))
    return f"{broker} was drained, but {why}. Don't restart it; to drain it again: {again}"


def _moves_take_s(throttle: ApplyThrottle, turns: int, moves: int) -> float:
    """How long the moves take that are left in this turn and the turns to come, each as a run of its own.

    A turn that moves nothing takes no time.
    """
    runs = min(turns, moves)
    return runs * throttle.takes_s(1) + (moves - runs) * throttle.pause_s


def waits_for(ledger: Ledger, roll: Plan) -> str | None:
    """What others have to do before the roll can go on, in words; None if it can go on now, or is over."""
    seen = progress_of(ledger, roll)
    approvals = approvals_of_plan(ledger, digest_of(roll))
    if seen.recorded.ended is not None or not any(row.is_in_force(ledger.latest_ms()) for row in approvals):
        return None
    if seen.recorded.pause is not None:
        return None if left_off(ledger, roll.identity.cluster_name) else f"it is {seen.recorded.pause}"
    if seen.turn is None:
        return None
    if seen.state == "moving":
        return f"another process drains {seen.turn.broker}"
    if (broker := _to_restart(seen)) is not None:
        return f"{broker} is drained, and waits for its restart"
    return None


def ended_early(ledger: Ledger, roll: Plan) -> str | None:
    """Why the turn's run ended with steps left, if nobody has said since that the roll is to go on; otherwise None."""
    seen, digest = progress_of(ledger, roll), digest_of(roll)
    if seen.run is None or seen.run.state != "stopped" or seen.state != "stopped" or seen.recorded.announced:
        return None
    lifted = [event.at_ms for event in events_of(ledger, [digest], [PAUSE_LIFTED]).get(digest, ())]
    return seen.run.sentence if max(lifted, default=0) < (seen.run.ended_at_ms or 0) else None


def _to_restart(seen: Progress) -> str | None:
    recorded = seen.recorded
    if seen.turn is None or seen.state != "drained" or recorded.announced or recorded.ended is not None:
        return None
    # Meanwhile, the cluster's own balancer may bring bundles back: the broker is looked at again afterwards.
    return None if recorded.pause is not None or recorded.is_given_up else seen.turn.broker


def _turns(seen: Progress) -> tuple[TurnStatus, ...]:
    moved = Counter[str]()
    plans = {each.broker: each.plan for each in seen.recorded.turns}
    of_plan = {each.plan: each.broker for each in seen.recorded.turns}
    for run in seen.runs:
        moved[of_plan[run.digest]] += sum(record.is_confirmed for record in seen.steps[run.id].values())
    return tuple(
        TurnStatus(broker=broker, state=_shown(seen, broker), plan=plans.get(broker), moved=moved[broker])
        for broker in (*seen.recorded.restarted, *seen.left)
    )


def _shown(seen: Progress, broker: str) -> ShownState:
    if broker in seen.recorded.restarted:
        return "restarted"
    if seen.turn is None or seen.turn.broker != broker:
        return "to come"
    return seen.state or "to come"


def _sentence(seen: Progress, roll: Plan, *, approved: bool) -> str:
    command = f"pulsar-advisor roll continue {short(digest_of(roll))}"
    if seen.recorded.ended is not None:
        return f"the roll is over: {seen.recorded.ended}"
    if not approved:
        approve = f"pulsar-advisor {' '.join(approve_words(roll))}"
        return f"no approval of the roll is in force: it can't continue before {approve}"
    if seen.recorded.pause is not None:
        return f"the roll is {seen.recorded.pause}; to continue: {command}"
    if seen.recorded.is_given_up:
        return f"the roll's process has ended, so the cluster's own balancer may be on; to continue: {command}"
    if seen.turn is None:
        return f"next: {command}" if seen.left else f"every broker was restarted: {command} ends the roll"
    broker = seen.turn.broker
    if (person := seen.recorded.announced) is not None:
        return f"{person.name} says that {broker} was restarted. To check that it is back and continue: {command}"
    if seen.state == "drained":
        return f"{broker} is drained. Restart it, then: {command} --restarted {broker}"
    if seen.state == "moving":
        return f"{broker} is being drained"
    if seen.state == "stopped" and seen.run is not None:
        why = f": {seen.run.sentence}" if seen.run.sentence else ": its process has ended"
        return f"the turn of {broker} stopped{why}. Check it, then: {command}, or with --anew to plan the turn again"
    if seen.state == "moved":
        return f"the moves of {broker} are done; to check that nothing is left there: {command}"
    return f"next is {broker}: {command}"
