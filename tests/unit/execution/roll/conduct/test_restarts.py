"""The next turn waits until the restarted broker is back and the leader knows it; only its own announcement counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.rolls import give_up, record_announced
from pulsar_advisor.execution.roll import conduct, steering
from pulsar_advisor.execution.roll.conduct import NotBackYet, Roll, go_on
from pulsar_advisor.execution.roll.steering import announce, end
from pulsar_advisor.model.errors import ClusterUnreachable, Refused, UsageError
from unit.execution.actors import approved
from unit.execution.doubles import B1, B2, B3, make_plan, unload_step
from unit.execution.roll.doubles import OLIVE, ORDER, RestartedCluster, go_on_after, is_off, outcome


def gone(cluster: RestartedCluster) -> None:
    cluster.brokers.discard(B1)


def sick(cluster: RestartedCluster) -> None:
    cluster.unhealthy[B1] = "HTTP 500"


def the_same(cluster: RestartedCluster) -> None:
    cluster.started[B1] = 1


def unreported(cluster: RestartedCluster) -> None:
    cluster.unreported.add(B1)


def unknown(cluster: RestartedCluster) -> None:
    cluster.unknown |= cluster.owned_bundles(B2)


def unseen(cluster: RestartedCluster) -> None:
    cluster.shows_the_leaders_view = False


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (gone, f"{B1} is not among the active brokers"),
        (sick, f"{B1} is not healthy: HTTP 500"),
        (the_same, f"{B1} has not been restarted"),
        (unreported, f"the leader has no report of {B1} since its restart"),
        (unknown, f"the leader has no report of {B2} yet that lists shop/"),
        (unseen, r"the reports that the leader has can't be read here .* 15 more min "),
    ],
)
def test_the_next_turn_waits_until_the_broker_is_back_and_the_leader_knows_it(
    roll: Roll, cluster: RestartedCluster, spoil: Callable[[RestartedCluster], None], why: str
) -> None:
    go_on(roll)
    cluster.restart(B1)
    spoil(cluster)
    sent = len(cluster.writes)
    with pytest.raises(Refused, match=f"the roll can't continue yet: {why}"):
        go_on_after(roll, B1, wait_s=30)
    assert len(cluster.writes) == sent
    assert roll.look().recorded.restarted == ()
    assert is_off(cluster) == [True, True], "it goes on as soon as somebody says it again"


def test_no_restart_is_waited_for_once_the_roll_has_ended(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.unhealthy[B1] = "HTTP 500"
    cluster.later(10, lambda: end(ledger, roll.plan, OLIVE))
    began_ms = cluster.time.ms
    with pytest.raises(Refused, match="has ended: ended by olive"):
        go_on_after(roll, B1, wait_s=1200)
    assert cluster.time.ms - began_ms < 30_000


def test_a_restart_that_two_hosts_wait_for_is_recorded_once(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    go_on(roll)
    cluster.unhealthy[B1] = "HTTP 500"
    announce(ledger, roll.plan, B1, OLIVE)

    def elsewhere() -> None:
        cluster.unhealthy.clear()
        cluster.restart(B1)
        go_on(roll)

    cluster.later(10, elsewhere)
    go_on(roll, wait_s=1200)
    assert roll.look().recorded.restarted == (B1,)


def test_a_restart_that_another_host_confirms_at_the_same_moment_is_confirmed(
    roll: Roll, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on(roll)
    cluster.restart(B1)
    announce(roll.ledger, roll.plan, B1, OLIVE)
    confirm = conduct._confirm

    def confirmed_meanwhile(*arguments: Any) -> None:
        monkeypatch.setattr(conduct, "_confirm", confirm)
        go_on(roll)
        confirm(*arguments)

    monkeypatch.setattr(conduct, "_confirm", confirmed_meanwhile)
    go_on(roll)
    assert roll.look().recorded.restarted == (B1,)


def test_where_the_leaders_view_can_not_be_seen_brokers_get_the_time_to_publish(
    roll: Roll, cluster: RestartedCluster
) -> None:
    cluster.shows_the_leaders_view = False
    go_on(roll)
    cluster.restart(B1)
    began_ms = cluster.time.ms
    assert outcome(go_on_after(roll, B1, wait_s=1200)) == "done"
    assert cluster.time.ms - began_ms >= 890_000


def test_the_leader_has_to_know_of_the_moves_of_all_plans_of_a_turn(roll: Roll, cluster: RestartedCluster) -> None:
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.once("after the call", lambda: cluster.owners.update({basket: B1}))
    go_on(roll)
    first, second = roll.look().runs
    assert [record.bundle for record in roll.look().steps[second.id].values()] == [basket]
    cluster.restart(B1)
    cluster.unknown = {record.bundle for record in roll.look().steps[first.id].values()}
    with pytest.raises(Refused, match=r"the leader has no report of .* yet that lists"):
        go_on_after(roll, B1)
    cluster.unknown.clear()
    assert outcome(go_on(roll)) == "done"


def test_a_process_that_does_not_say_when_it_started_is_taken_at_the_persons_word(
    roll: Roll, cluster: RestartedCluster
) -> None:
    cluster.started = dict.fromkeys(ORDER)
    go_on(roll)
    assert outcome(go_on_after(roll, B1)) == "done"


@pytest.mark.parametrize(
    ("broker", "refusal", "why"),
    [
        (B1, Refused, f"{B1} has had its turn, and its restart is recorded: it is the turn of {B2}, which is drained"),
        (B3, Refused, f"{B3} was not drained: it is the turn of {B2}"),
        ("10.9.9.9", UsageError, f"there is no broker '10.9.9.9'.*; the roll has {B1}, {B2}, {B3}"),
    ],
)
def test_a_broker_whose_turn_it_is_not_was_not_drained(
    roll: Roll, cluster: RestartedCluster, broker: str, refusal: type[Exception], why: str
) -> None:
    go_on(roll)
    cluster.restart(B1)
    go_on_after(roll, B1)
    with pytest.raises(refusal, match=why):
        go_on_after(roll, broker)
    assert roll.look().recorded.restarted == (B1,)


def test_a_restart_that_was_announced_is_not_forgotten(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    with pytest.raises(NotBackYet, match="has not been restarted"):
        go_on_after(roll, B1)
    cluster.restart(B1)
    assert outcome(go_on(roll)) == "done"
    assert roll.look().recorded.restarted == (B1,)


def test_a_single_wrong_answer_brings_no_broker_back(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    cluster.unhealthy[B1] = "HTTP 500"
    cluster.mistaken_once("why_unhealthy", lambda: None)
    with pytest.raises(NotBackYet, match="HTTP 500"):
        go_on_after(roll, B1)
    assert roll.look().recorded.restarted == ()


def test_a_broker_that_does_not_answer_is_not_back(
    roll: Roll, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(broker: str) -> str | None:
        raise ClusterUnreachable(f"http://{broker}: connection refused")

    go_on(roll)
    cluster.restart(B1)
    monkeypatch.setattr(cluster, "why_unhealthy", refused)
    with pytest.raises(NotBackYet, match="connection refused"):
        go_on_after(roll, B1)


def test_an_announcement_that_comes_after_its_turn_is_none_of_the_next_broker(
    roll: Roll, cluster: RestartedCluster
) -> None:
    cluster.started[B2] = None  # so that a person's word is enough
    go_on(roll)
    cluster.restart(B1)
    go_on_after(roll, B1)
    record_announced(roll.ledger, roll.digest, B1, OLIVE, roll.look().recorded)  # as earlier releases did
    go_on(roll)
    assert roll.look().left == (B2, B3)


def test_a_restart_is_not_announced_of_a_broker_whose_turn_began_anew_at_that_moment(
    roll: Roll, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on(roll)

    def planned_anew_before(*said: Any) -> bool:
        give_up(roll.ledger, roll.digest)  # from now on the balancer may fill the broker
        return record_announced(*said)

    monkeypatch.setattr(steering, "record_announced", planned_anew_before)
    with pytest.raises(Refused, match=f"see whether {B1} is drained"):
        announce(roll.ledger, roll.plan, B1, OLIVE)
    assert roll.look().recorded.announced is None


@pytest.mark.parametrize("goes_on", [False, True], ids=["announced", "restarted"])
def test_a_restart_that_another_host_announces_at_the_same_moment_is_announced(
    roll: Roll, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    go_on(roll)
    cluster.restart(B1)

    def announced_before(*said: Any) -> bool:
        record_announced(*said)
        if goes_on:
            go_on(roll)
        return record_announced(*said)

    monkeypatch.setattr(steering, "record_announced", announced_before)
    announce(roll.ledger, roll.plan, B1, OLIVE)
    go_on(roll)
    assert roll.look().recorded.restarted == (B1,)


def test_a_restart_is_not_announced_to_a_turn_or_another_plan(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    """As a DAG might that was given the digest of another plan."""
    go_on(roll)
    cluster.restart(B1)
    go_on_after(roll, B1)
    turn = roll.look().turn
    assert turn is not None and turn.plan is not None
    with pytest.raises(Refused, match=f"{turn.plan} is a turn of the roll {roll.digest}: name the roll"):
        announce(ledger, recorded_plan(ledger, turn.plan), B2, OLIVE)
    with pytest.raises(Refused, match="is not a roll"):
        announce(ledger, approved(ledger, make_plan([unload_step()])), B2, OLIVE)
    assert roll.look().recorded.announced is None


def test_a_restart_before_the_first_turn_is_none(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.restart(B1)
    with pytest.raises(Refused, match=f"{B1} was not drained: no turn is under way. If you restarted it before"):
        go_on_after(roll, B1)


def test_a_broker_is_not_taken_for_restarted_before_anything_was_moved(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.migration = "COPYING"
    with pytest.raises(Refused, match="is being migrated"):
        go_on(roll)
    cluster.restart(B1)
    with pytest.raises(Refused, match=f"{B1} was not drained: it is the turn of {B1}, which is not drained yet"):
        go_on_after(roll, B1)
    assert roll.look().recorded.restarted == ()


def test_a_broker_that_is_killed_while_it_is_drained_counts_as_restarted_once_it_is_back(
    roll: Roll, cluster: RestartedCluster
) -> None:
    def killed() -> None:
        cluster.brokers.discard(B1)
        cluster.restart(B1)

    cluster.once("after the call", killed)
    assert outcome(go_on(roll)) == "partial"
    with pytest.raises(Refused, match=f"{B1} is not among the active brokers"):
        go_on_after(roll, B1)
    cluster.brokers.add(B1)
    assert outcome(go_on_after(roll, B1)) == "done"
    assert roll.look().recorded.restarted == (B1,)


def test_a_broker_that_is_away_is_waited_for_by_a_person(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    cluster.brokers.discard(B3)
    with pytest.raises(Refused, match=f"{B3} is not active: bring it back"):
        go_on_after(roll, B1)
    cluster.brokers.discard(B2)
    with pytest.raises(Refused, match=f"{B2}, {B3} are not active: bring them back"):
        go_on(roll)
    cluster.brokers |= {B2, B3}
    assert outcome(go_on(roll)) == "done"
