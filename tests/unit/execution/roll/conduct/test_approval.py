"""A roll and its turns do what was approved, under the approval that is in force, and nothing beyond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Override, Unload
from pulsar_advisor.execution.consent import turn
from pulsar_advisor.execution.consent.approval import approve, standing_approval, why_not_again, withdraw
from pulsar_advisor.execution.ledger.approvals import Terms, approvals_of_plan
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import lift_pause_of_plan
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.tables import Approval
from pulsar_advisor.execution.roll.conduct import Roll, go_on
from pulsar_advisor.execution.roll.status import status_of
from pulsar_advisor.execution.roll.steering import end, pause
from pulsar_advisor.execution.run.guard.left_off import left_off
from pulsar_advisor.execution.run.guard.settings import GUARDED
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE, BOB, FOUR_EYES, approved
from unit.execution.doubles import B1, B2, B3, NAMESPACE, UPPER, FakeCluster, forecast
from unit.execution.roll.doubles import (
    OLIVE,
    THROTTLE,
    RestartedCluster,
    approved_roll,
    changed,
    ended,
    figures,
    go_on_after,
    is_off,
    outcome,
    roll_of,
    roll_plan,
    stopped_turn,
)


def test_nothing_is_sent_without_an_approval_nor_once_it_is_withdrawn_and_the_balancer_comes_back(
    ledger: Ledger, cluster: RestartedCluster
) -> None:
    with pytest.raises(Refused, match="has no approval"):
        go_on(roll_of(roll_plan(cluster), ledger, cluster))
    assert cluster.writes == []
    plan = approved_roll(ledger, cluster)
    roll = roll_of(plan, ledger, cluster)
    go_on(roll)
    cluster.restart(B1)
    go_on_after(roll, B1)
    sent, turn = len(cluster.writes), roll.look().turn
    assert turn is not None
    assert turn.plan is not None
    assert withdraw(ledger, digest_of(plan), BOB) == 2, "the roll's approval and that of the turn under it"
    assert all(row.withdrawn_at_ms for row in approvals_of_plan(ledger, turn.plan))
    cluster.restart(B2)
    with pytest.raises(Refused, match="was withdrawn"):
        go_on_after(roll, B2)
    assert len(cluster.writes) == sent
    assert is_off(cluster) == [False, False]
    assert audit(ledger).findings == ()


def test_an_approval_that_expires_while_a_broker_restarts_ends_the_roll_and_its_guard(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    assert left_off(ledger, "live") == []
    cluster.time.pass_s(25 * 3600)
    assert [switch.setting for switch in left_off(ledger, "live")] == list(GUARDED)
    with pytest.raises(Refused, match="expired"):
        go_on_after(roll, B1)
    assert is_off(cluster) == [False, False]


def test_the_run_of_its_first_turn_keeps_a_roll_from_no_further_approval_until_the_roll_is_over(
    roll: Roll, ledger: Ledger
) -> None:
    go_on(roll)
    assert why_not_again(ledger, roll.digest) is None
    end(ledger, roll.plan, ALICE)
    assert str(why_not_again(ledger, roll.digest)).startswith("is a roll that is over, ended by alice")


def test_a_roll_that_is_approved_again_looks_at_the_drained_broker_again(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    cluster.time.pass_s(25 * 3600)
    with pytest.raises(Refused, match="have it approved again"):
        go_on(roll)
    cluster.owners[f"{NAMESPACE}/{UPPER}"] = B1  # as the balancer decided, which is on again
    approve(ledger, roll.plan, digest=roll.digest, approver=BOB, policy=roll.policy, terms=Terms(throttle=THROTTLE))
    assert status_of(ledger, roll.plan).restart is None, "clients use it"
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, cluster.owned_bundles(B1)) == ("drained", frozenset())
    assert is_off(cluster) == [True, True]


WORSE = forecast({B1: 0.8, B2: 0.9, B3: 0.3})


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda p: changed(p, cluster="staging"), "it is for another cluster"),
        (lambda p: changed(p, shedder="drain"), "it is not a roll"),
        (lambda p: changed(p, goal=Goal(ROLL, p.goal.brokers, None, 0.95)), "its ceiling, limits or settings"),
        (lambda p: changed(p, limits={"max_unloads": 900}), "its ceiling, limits or settings"),
        (lambda p: changed(p, goal=replace(p.goal, brokers=(B3, B2))), f"its order is {B3}, {B2}"),
        (lambda p: changed(p, snapshot="20261120T000000Z"), "is not later than the roll's"),
        (lambda p: changed(p, steps=(p.steps[0].model_copy(update={"source": B3}),)), "is not an unload from"),
        (lambda p: changed(p, predicted=p.predicted.model_copy(update={"after": WORSE})), "--accept-worse"),
        (lambda p: figures(p, highest_usage_ratio=0.9), "--accept-worse"),
        (lambda p: figures(p, highest_usage_ratio=1), "--accept-worse"),  # 1.0, as a plan's file has it
        (lambda p: figures(p, moves=9), f"it doesn't empty {B2}"),
    ],
)
def test_a_turn_that_goes_beyond_what_was_approved_is_refused_and_nothing_is_sent(
    roll: Roll, cluster: RestartedCluster, spoil: Callable[[Plan], Plan], reason: str
) -> None:
    roll = replace(roll, plan_anew=lambda goal: (spoil(roll_plan(cluster, goal.brokers)), None))
    go_on(roll)
    cluster.restart(B1)
    sent = len(cluster.writes)
    with pytest.raises(Refused, match=f"goes beyond what was approved: .*{reason}"):
        go_on_after(roll, B1)
    assert len(cluster.writes) == sent


def test_what_the_rolls_approval_consents_to_its_turns_may_do(ledger: Ledger, cluster: RestartedCluster) -> None:
    plan = approved(ledger, roll_plan(cluster), consents=["worse"], valid_for_s=24 * 3600, throttle=THROTTLE)

    def worse(goal: Goal) -> tuple[Plan, str | None]:
        cluster.time.pass_s(1)
        made = roll_plan(cluster, goal.brokers)
        return changed(made, predicted=made.predicted.model_copy(update={"after": WORSE})), None

    roll = roll_of(plan, ledger, cluster, plan_anew=worse)
    go_on(roll)
    cluster.restart(B1)
    assert outcome(go_on_after(roll, B1)) == "done"


def test_a_bundle_that_would_move_more_often_than_foretold_is_refused(
    ledger: Ledger, cluster: RestartedCluster
) -> None:
    once = roll_plan(cluster)
    once = figures(once, moves_of_a_bundle=1)
    plan = approved_roll(ledger, cluster, decision=once.decision)
    roll = roll_of(plan, ledger, cluster)
    go_on(roll)
    cluster.restart(B1)
    with pytest.raises(Refused, match="would move 2 times, more often than the approved 1"):
        go_on_after(roll, B1)


@pytest.mark.parametrize("most", [None, "2", 2.0])
def test_a_roll_that_sets_no_bound_to_the_moves_of_a_bundle_is_not_approved(
    ledger: Ledger, cluster: FakeCluster, most: object
) -> None:
    unbounded = figures(roll_plan(cluster), moves_of_a_bundle=most)
    with pytest.raises(Refused, match="doesn't say how often it moves a bundle"):
        approved_roll(ledger, cluster, decision=unbounded.decision)


def test_a_plan_that_was_not_computed_here_is_refused(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    roll = replace(roll, plan_anew=lambda goal: (roll_plan(cluster, goal.brokers), "somebody sent it"))
    with pytest.raises(Refused, match="was not computed here: somebody sent it"):
        go_on_after(roll, B1)


def test_a_turn_goes_on_under_the_approval_that_its_roll_was_given_anew(
    ledger: Ledger, cluster: RestartedCluster
) -> None:
    plan = approved(ledger, roll_plan(cluster), consents=(), valid_for_s=3600, throttle=THROTTLE)
    roll = roll_of(plan, ledger, cluster)
    stopped_turn(roll, ledger, cluster)
    cluster.time.pass_s(3600)
    approve(ledger, plan, digest=roll.digest, approver=BOB, policy=FOUR_EYES, terms=Terms(throttle=THROTTLE))
    assert outcome(go_on(roll)) == "done"
    again = recorded_plan(ledger, str(roll.look().turn.plan))  # type: ignore[union-attr]
    turn.approve_as_roll(ledger, plan, again, FOUR_EYES)
    assert len(approvals_of_plan(ledger, digest_of(again))) == 2, "once, however often it is resumed"


def test_a_first_turn_is_resumed_under_the_approval_of_its_roll(
    ledger: Ledger, roll: Roll, cluster: FakeCluster
) -> None:
    cluster.once("after the call", lambda: pause(ledger, roll.plan, OLIVE))
    go_on(roll)
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    assert outcome(go_on(roll)) == "done"
    assert len(approvals_of_plan(ledger, roll.digest)) == 1


def test_an_approval_that_is_withdrawn_at_the_last_moment_covers_no_further_turn(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on(roll)
    cluster.restart(B1)

    def just_before(*arguments: Any) -> Approval:
        base = standing_approval(*arguments)
        withdraw(ledger, roll.digest, BOB)
        return base

    monkeypatch.setattr(turn, "standing_approval", just_before)
    with pytest.raises(Refused, match="the approval of bob was withdrawn"):
        go_on_after(roll, B1)
    assert [each.broker for each in roll.look().recorded.turns] == [B1]


def test_a_roll_that_was_ended_before_it_began_is_not_approved_again(roll: Roll) -> None:
    ended(roll)
    with pytest.raises(Refused, match=r"is over, ended by olive .*: capture again and make a new plan"):
        approved(roll.ledger, roll.plan)


def test_who_proposed_the_roll_proposes_its_turns_and_who_approved_it_approves_them(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.restart(B1)
    go_on_after(roll, B1)
    turn = roll.look().turn
    assert turn is not None
    assert turn.plan is not None
    [approval] = approvals_of_plan(ledger, turn.plan)
    assert (approval.approver, approval.source) == (BOB.name, BOB.source)
    assert approval.throttle.guard
    assert all(isinstance(write, Unload | Override) for write in cluster.writes)
    assert ALICE.name in ledger.events(turn.plan)[0].detail
