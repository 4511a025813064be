"""What lists and messages say of a roll: where it is, and whether it is over."""

from __future__ import annotations

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Reply
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.rolls import open_rolls
from pulsar_advisor.execution.roll.conduct import Roll, go_on
from pulsar_advisor.execution.roll.steering import pause
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import run
from unit.execution.doubles import B1, FakeCluster
from unit.execution.roll.doubles import (
    OLIVE,
    RestartedCluster,
    approved_roll,
    conducted,
    ended,
    go_on_after,
    roll_of,
    state_of,
)


def test_a_roll_whose_first_turn_is_done_is_not_carried_out_yet(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    with pytest.raises(Refused, match=f"`pulsar-advisor roll continue {short(digest_of(roll.plan))}` carries it out"):
        run(roll.plan, ledger, cluster)


def test_a_roll_between_two_turns_is_being_applied(roll: Roll) -> None:
    go_on(roll)
    assert state_of(roll) == "applying"


def test_a_roll_is_applied_once_every_broker_was_restarted(roll: Roll, cluster: RestartedCluster) -> None:
    conducted(roll, cluster)
    assert state_of(roll) == "applied"


def test_a_roll_that_somebody_ended_before_is_aborted(roll: Roll) -> None:
    go_on(roll)
    ended(roll)
    assert state_of(roll) == "aborted"


def test_a_roll_whose_own_plan_was_made_again_is_being_applied_nevertheless(
    roll: Roll, cluster: RestartedCluster
) -> None:
    cluster.time.pass_s(7 * 3600)
    go_on(roll)
    assert state_of(roll) == "applying"


def test_a_roll_whose_later_turn_stopped_has_stopped(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    cluster.replies, cluster.fails = [Reply(500, "no")] * 3, True
    go_on_after(roll, B1)
    assert state_of(roll) == "stopped"


def test_the_rolls_of_a_cluster_are_those_that_were_begun_and_are_not_over(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    cluster.time.pass_s(1)
    second = roll_of(approved_roll(ledger, cluster), ledger, cluster)
    assert open_rolls(ledger, roll.plan.cluster) == []
    go_on(roll)
    pause(ledger, roll.plan, OLIVE)
    with pytest.raises(Refused, match=f"not on {B1} any more"):
        go_on(second)
    assert open_rolls(ledger, roll.plan.cluster) == [second.digest, roll.digest]
    ended(roll)
    assert open_rolls(ledger, roll.plan.cluster) == [second.digest]
