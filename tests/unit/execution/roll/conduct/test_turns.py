"""A roll drains one broker after the other, and none is named for its restart as long as clients use it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.roll.conduct import Roll, go_on
from pulsar_advisor.execution.run.guard.left_off import left_off
from pulsar_advisor.execution.run.guard.settings import GUARDED
from pulsar_advisor.model.errors import ClusterUnreachable, Refused
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan
from unit.execution.doubles import B1, B2, B3, FakeCluster
from unit.execution.roll.doubles import (
    ORDER,
    RestartedCluster,
    conducted,
    figures,
    go_on_after,
    is_off,
    outcome,
    roll_plan,
)


def test_every_broker_is_empty_before_its_restart_and_no_bundle_moves_more_often_than_approved(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    cluster.overrides = {GUARDED[0]: "true"}
    emptied = []
    go_on(roll)
    while (turn := roll.look().turn) is not None:
        emptied.append((turn.broker, cluster.owned_bundles(turn.broker)))
        assert is_off(cluster) == [True, True]
        cluster.restart(turn.broker)
        go_on_after(roll, turn.broker)
    assert emptied == [(broker, frozenset()) for broker in ORDER]
    assert max(Counter(cluster.effects).values()) <= 2
    assert roll.look().recorded.ended == "every broker was restarted"
    assert cluster.overrides == {GUARDED[0]: "true"}
    assert left_off(ledger, "live") == []
    assert audit(ledger).findings == ()


def test_a_broker_that_came_back_on_its_old_release_is_named_at_the_end(roll: Roll, cluster: RestartedCluster) -> None:
    said: list[str] = []
    go_on(roll)
    while (turn := roll.look().turn) is not None:
        cluster.restart(turn.broker)
        cluster.releases[turn.broker] = "4.0.8" if turn.broker == B2 else "5.0.1"
        go_on_after(replace(roll, progress=said.append), turn.broker)
    assert f"every broker was restarted, but not on one release: 4.0.8 on {B2}; 5.0.1 on {B1}, {B3}" in said


def test_a_broker_that_cannot_be_asked_for_its_release_keeps_no_roll_open(
    roll: Roll, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(broker: str) -> str:
        raise ClusterUnreachable(f"{broker}: connection refused")

    monkeypatch.setattr(cluster, "release", refused)
    go_on(roll)
    while (turn := roll.look().turn) is not None:
        cluster.restart(turn.broker)
        go_on_after(roll, turn.broker)
    assert roll.look().recorded.ended == "every broker was restarted"


def test_a_roll_that_waits_for_a_restart_and_hears_of_none_stays_as_it_is(roll: Roll, cluster: FakeCluster) -> None:
    assert outcome(go_on(roll)) == "done"
    sent = len(cluster.writes)
    assert [go_on(roll), go_on(roll)] == [None, None]
    assert len(cluster.writes) == sent
    assert roll.look().state == "drained"


def test_the_leader_is_asked_for_before_each_turn_and_comes_last(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    cluster.led_by = B2
    go_on_after(roll, B1)
    assert roll.look().turn is not None
    assert roll.look().turn.broker == B3  # type: ignore[union-attr]
    cluster.restart(B3)
    assert outcome(go_on_after(roll, B3)) == "done"


def test_a_new_leader_before_the_first_turn_has_the_plan_made_again(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.led_by = B1
    assert conducted(roll, cluster) == [B2, B3, B1]


def test_an_approved_plan_that_has_grown_old_is_made_again(roll: Roll, cluster: FakeCluster) -> None:
    cluster.time.pass_s(7 * 3600)
    assert outcome(go_on(roll)) == "done"
    assert roll.look().turn is not None
    assert roll.look().turn.plan != roll.digest  # type: ignore[union-attr]


def test_it_is_made_again_too_if_it_is_old_by_the_ledgers_clock_alone(roll: Roll, cluster: FakeCluster) -> None:
    cluster.time.pass_s(6 * 3600 + 100)
    slow = replace(roll.clock, now_ms=lambda: roll.ledger.now_ms() - 240_000)
    go_on(replace(roll, clock=slow))
    assert roll.look().turn is not None
    assert roll.look().turn.plan != roll.digest  # type: ignore[union-attr]


def test_a_broker_with_nothing_to_move_waits_for_its_restart_at_once(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    cluster.restart(B1)
    for bundle in cluster.owned_bundles(B2):
        cluster.owners[bundle] = B1
    sent = len(cluster.writes)
    assert outcome(go_on_after(roll, B1)) == "done"
    assert (roll.look().turn.broker, roll.look().state) == (B2, "drained")  # type: ignore[union-attr]
    assert len(cluster.writes) == sent


def test_a_bundle_that_comes_to_a_broker_while_it_is_drained_leaves_it_too(roll: Roll, cluster: FakeCluster) -> None:
    """It has not reported its topics yet when the plan was carried out."""
    basket = next(iter(cluster.owned_bundles(B3)))

    def come() -> None:
        cluster.owners[basket] = B1
        cluster._moved_at_ms[basket], cluster.statistics_lag_s = cluster.time.ms, 20.0

    cluster.once("after the call", come)
    assert outcome(go_on(roll)) == "done"
    assert cluster.owned_bundles(B1) == frozenset()
    assert roll.look().state == "drained"
    assert Counter(cluster.effects)[basket] == 1


def test_a_bundle_without_clients_stays_once_the_broker_has_had_its_statistics_pass(
    roll: Roll, cluster: FakeCluster
) -> None:
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.owners[basket] = B1
    cluster._moved_at_ms[basket], cluster.statistics_lag_s = cluster.time.ms, 10_000.0
    began_ms = cluster.time.ms
    assert outcome(go_on(roll)) == "done"
    assert cluster.owned_bundles(B1) == {basket}
    assert roll.look().state == "drained"
    assert cluster.time.ms - began_ms >= 75_000


def test_a_broker_is_not_drained_as_long_as_nobody_has_looked_at_what_came_meanwhile(
    roll: Roll, cluster: FakeCluster
) -> None:
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.owners[basket] = B1
    cluster._moved_at_ms[basket], cluster.statistics_lag_s = cluster.time.ms, 10_000.0
    until_ms = cluster.time.ms + 60_000
    hurried = replace(roll, interruption=lambda: "ended by SIGTERM" if cluster.time.ms > until_ms else None)
    with pytest.raises(Refused, match=f"{B1}, which is drained except for bundles that came .*; ended by SIGTERM"):
        go_on(hurried)
    assert roll.look().state == "moved"
    assert go_on(roll) is None
    assert roll.look().state == "drained"


def test_a_broker_that_still_has_bundles_with_clients_is_not_drained(roll: Roll, cluster: FakeCluster) -> None:
    """Its new plans don't see them, as a snapshot may not."""
    blind = roll_plan(cluster)
    blind = figures(blind.model_copy(update={"steps": ()}), moves=0)

    def plan_anew(goal: Goal) -> tuple[Plan, str | None]:
        cluster.time.pass_s(1)
        return blind.model_copy(update={"snapshot": roll_plan(cluster).snapshot, "goal": goal}), None

    roll = replace(roll, plan_anew=plan_anew)
    basket = next(iter(cluster.owned_bundles(B3)))
    cluster.owners[basket] = B1
    with pytest.raises(Refused, match="keeps getting bundles that clients use"):
        go_on(roll)
    assert (roll.look().turn.broker, roll.look().state) == (B1, "moved")  # type: ignore[union-attr]
