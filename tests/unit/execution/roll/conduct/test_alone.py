"""One roll at a time, one process per turn, and no other plan beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pulsar_advisor.execution.consent.approval import standing_approval, withdraw
from pulsar_advisor.execution.ledger.held_run import start_run
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.rolls import record_drained
from pulsar_advisor.execution.roll import conduct
from pulsar_advisor.execution.roll.conduct import Roll, go_on
from pulsar_advisor.execution.roll.status import status_of, waits_for
from pulsar_advisor.execution.roll.steering import announce
from pulsar_advisor.execution.run.guard.settings import GUARDED
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import BOB, FOUR_EYES, approved, run
from unit.execution.doubles import B1, B2, B3, BASKETS, LOWER, FakeCluster, Killed, make_plan, unload_step
from unit.execution.roll.doubles import (
    OLIVE,
    RestartedCluster,
    approved_roll,
    die,
    ended,
    is_off,
    outcome,
    roll_of,
    roll_plan,
)


def test_no_other_plan_is_applied_while_a_roll_goes_on(roll: Roll, ledger: Ledger, cluster: FakeCluster) -> None:
    go_on(roll)
    other = approved(ledger, make_plan([unload_step(source=B3, destination=B2)]))
    with pytest.raises(Refused, match="is under way on this cluster"):
        run(other, ledger, cluster)
    ended(roll)
    assert run(other, ledger, cluster).outcome == "done"


@pytest.mark.parametrize("begins", [True, False], ids=["begins", "goes on"])
def test_no_run_of_another_plan_becomes_active_though_a_roll_has_drained_a_broker_since_it_was_checked(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster, begins: bool
) -> None:
    onto_it = approved(ledger, make_plan([unload_step(bundle=LOWER, source=B2, destination=B1, namespace=BASKETS)]))
    if not begins:
        start_run(ledger, onto_it, standing_approval(ledger, onto_it, FOUR_EYES)).end("stopped", "")
    cluster.mistaken_once("migrating", lambda: go_on(roll) and None)  # asked last before a run
    with pytest.raises(Refused, match=f"the roll {roll.digest} is under way"):
        run(onto_it, ledger, cluster, resume=not begins)
    assert (status_of(ledger, roll.plan).restart, cluster.owned_bundles(B1)) == (B1, frozenset())


def test_a_drained_broker_is_drained_again_after_another_plan_that_began_while_the_roll_was_not_approved(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    cluster.overrides = dict.fromkeys(GUARDED, "false")  # by hand, so that nothing is given back in between
    go_on(roll)
    withdraw(ledger, roll.digest, BOB)
    cluster.time.pass_s(1)
    run(
        approved(ledger, make_plan([unload_step(bundle=LOWER, source=B2, destination=B1, namespace=BASKETS)])),
        ledger,
        cluster,
    )
    approved(ledger, roll.plan)
    assert status_of(ledger, roll.plan).restart is None
    cluster.time.pass_s(1)
    go_on(roll)
    assert (status_of(ledger, roll.plan).restart, cluster.owned_bundles(B1)) == (B1, frozenset())


def test_a_drained_broker_is_drained_again_after_another_plan_that_ran_just_before_it_was_recorded_as_drained(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.overrides = dict.fromkeys(GUARDED, "false")
    onto_it = make_plan([unload_step(bundle=LOWER, source=B2, destination=B1, namespace=BASKETS)])

    def recorded_late(*drained: Any) -> bool:
        withdraw(ledger, roll.digest, BOB)
        run(approved(ledger, onto_it), ledger, cluster)
        return record_drained(*drained)

    with monkeypatch.context() as once:
        once.setattr(conduct, "record_drained", recorded_late)
        go_on(roll)
    approved(ledger, roll.plan)
    assert status_of(ledger, roll.plan).restart is None
    cluster.time.pass_s(1)
    go_on(roll)
    assert (status_of(ledger, roll.plan).restart, cluster.owned_bundles(B1)) == (B1, frozenset())


def test_one_roll_at_a_time(roll: Roll, ledger: Ledger, cluster: RestartedCluster) -> None:
    cluster.time.pass_s(1)
    second = roll_of(approved_roll(ledger, cluster), ledger, cluster)
    go_on(roll)
    sent = len(cluster.writes)
    with pytest.raises(Refused, match=f"the roll {roll.digest} is under way"):
        go_on(second)
    assert len(cluster.writes) == sent
    assert is_off(cluster) == [True, True]
    ended(roll)
    with pytest.raises(Refused, match=f"not on {B1} any more"):
        go_on(second)
    assert outcome(go_on(second)) == "done", "planned anew: the broker is empty already"
    assert second.look().state == "drained"


def test_a_second_roll_begins_no_turn_that_it_planned_while_the_first_one_began(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    cluster.time.pass_s(7 * 3600)  # so that its first turn is planned anew
    first = roll_of(approved_roll(ledger, cluster), ledger, cluster)
    plan_anew = roll.plan_anew

    def planned_meanwhile(goal: Goal) -> tuple[Plan, str | None]:
        go_on(first)
        return plan_anew(goal)

    with pytest.raises(Refused, match=f"the roll {first.digest} is under way"):
        go_on(replace(roll, plan_anew=planned_meanwhile))
    assert (status_of(ledger, first.plan).restart, is_off(cluster)) == (B1, [True, True])


def test_of_two_hosts_that_go_on_at_once_one_begins_the_turn(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.restart(B1)
    announce(ledger, roll.plan, B1, OLIVE)

    def planned_meanwhile(goal: Goal) -> tuple[Plan, str | None]:
        cluster.once("before the call", die)  # for this test it goes on: its lease does
        with pytest.raises(Killed):
            go_on(roll)
        cluster.time.pass_s(1)
        return roll_plan(cluster, goal.brokers), None

    with pytest.raises(Refused, match="another process carries out a turn of the roll, run 2: wait until it ends"):
        go_on(replace(roll, plan_anew=planned_meanwhile))
    assert [turn.broker for turn in roll.look().recorded.turns] == [B1, B2]
    assert roll.look().state == "moving"
    assert waits_for(ledger, roll.plan) == f"another process drains {B2}"
    with pytest.raises(Refused, match=f"the turn of {B2}, which is being drained, by another process: wait until"):
        go_on(roll)


def test_a_turn_that_another_host_has_carried_out_meanwhile_is_not_begun_again(
    roll: Roll, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.restart(B1)
    announce(roll.ledger, roll.plan, B1, OLIVE)

    def planned_meanwhile(goal: Goal) -> tuple[Plan, str | None]:
        plan = roll_plan(cluster, goal.brokers)
        go_on(roll)
        return plan, None

    with pytest.raises(Refused, match="another process has carried the roll on since this turn was planned"):
        go_on(replace(roll, plan_anew=planned_meanwhile))
    assert roll.look().state == "drained"


def test_apply_carries_out_no_roll_and_a_roll_no_other_plan(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    with pytest.raises(Refused, match=f"`pulsar-advisor roll continue {short(digest_of(roll.plan))}` carries it out"):
        run(roll.plan, ledger, cluster)
    drain = approved(ledger, make_plan([unload_step()]))
    with pytest.raises(Refused, match="is not a roll"):
        go_on(roll_of(drain, ledger, cluster))
    ended(roll)
    with pytest.raises(Refused, match=r"which is over, ended by olive .*: capture again and make a new plan"):
        run(roll.plan, ledger, cluster)
    assert cluster.writes == []


def test_another_cluster_of_that_name_is_refused(roll: Roll, cluster: FakeCluster) -> None:
    cluster.name = "staging"
    with pytest.raises(Refused, match="the plan is for cluster 'live'"):
        go_on(roll)
