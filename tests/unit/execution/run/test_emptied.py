"""What clients use on a broker that was drained, though no statistics had it when the plan was made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import not_drained, runs_on
from pulsar_advisor.execution.run.emptied import Left, left_on
from pulsar_advisor.execution.run.options import undisturbed
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan, PlanDecision
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import approved, run
from unit.execution.doubles import B1, BASKETS, LOWER, FakeCluster, make_plan, unload_step, widen

BASKET = f"{BASKETS}/{LOWER}"
LAG_S = 40.0


@pytest.fixture
def emptied(cluster: FakeCluster) -> FakeCluster:
    """Nothing is left on the first broker but one bundle that has just come, and isn't reported yet."""
    widen(cluster)
    cluster.owners = dict.fromkeys(cluster.owners, "another") | {BASKET: B1}
    cluster._moved_at_ms[BASKET], cluster.statistics_lag_s = cluster.time.ms, LAG_S
    return cluster


def look(cluster: FakeCluster, interruption: Callable[[], str | None] = undisturbed) -> Left:
    return left_on(cluster, [B1], cluster.time.clock, interruption)


def test_a_bundle_that_came_within_the_last_statistics_pass_is_waited_for(emptied: FakeCluster) -> None:
    assert look(emptied) == Left(used=(BASKET,))


def test_brokers_that_update_statistics_more_rarely_are_waited_for_longer(emptied: FakeCluster) -> None:
    emptied.statistics_lag_s = 240.0
    emptied.reports_within_s = lambda: 255.0  # type: ignore[method-assign]
    assert look(emptied) == Left(used=(BASKET,))


def test_one_that_no_client_uses_is_none_after_a_statistics_pass(emptied: FakeCluster) -> None:
    emptied.statistics_lag_s = 10_000.0
    began_ms = emptied.time.ms
    assert look(emptied) == Left()
    assert 75_000 <= emptied.time.ms - began_ms < 85_000


def test_one_without_topics_is_not_waited_for(emptied: FakeCluster) -> None:
    emptied.all_topics.clear()
    began_ms = emptied.time.ms
    assert look(emptied) == Left()
    assert emptied.time.ms <= began_ms + 1_000


@pytest.mark.parametrize("method", ["owned_bundles", "may_have_topics"])
def test_a_single_wrong_answer_empties_no_broker(emptied: FakeCluster, method: str) -> None:
    emptied.mistaken_once(method, frozenset)
    assert look(emptied) == Left(used=(BASKET,))


def test_one_that_comes_during_the_look_has_its_own_statistics_pass(emptied: FakeCluster) -> None:
    other = next(bundle for bundle in emptied.owners if bundle != BASKET)
    emptied._moved_at_ms |= {BASKET: emptied.time.ms + 10_000_000, other: emptied.time.ms + 60_000}
    asked, began_ms = emptied.owned_bundles, emptied.time.ms

    def comes(broker: str) -> frozenset[str]:
        if emptied.time.ms - began_ms >= 60_000:
            emptied.owners[other] = B1
        return asked(broker)

    emptied.owned_bundles = comes  # type: ignore[method-assign]
    assert look(emptied) == Left(used=(other,))


def test_an_interrupted_look_is_no_proof(emptied: FakeCluster) -> None:
    assert look(emptied, lambda: "SIGTERM").interrupted == "SIGTERM"


def test_pulsars_own_namespaces_may_stay(emptied: FakeCluster) -> None:
    emptied.owners = {f"pulsar/system/{LOWER}": B1}
    assert look(emptied) == Left()


def drain() -> Plan:
    figures = {"moves": 1, "excluded": 0}
    decision = PlanDecision(acts_in_cycle=None, why_nothing=None, would_pulsar_act="", figures=figures)
    return make_plan([unload_step(1)], shedder="drain", goal=Goal("drain", (B1,), None, 0.85), decision=decision)


def drained(ledger: Ledger, cluster: FakeCluster) -> Plan:
    """A plan for the one bundle that its snapshot showed; the other has come since."""
    widen(cluster)
    cluster.owners = dict.fromkeys(cluster.owners, "another") | {drain().steps[0].bundle_name: B1, BASKET: B1}
    cluster._moved_at_ms[BASKET], cluster.statistics_lag_s = cluster.time.ms, LAG_S
    return approved(ledger, drain())


def test_a_drain_whose_broker_clients_still_use_reaches_its_goal_only_in_part(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = drained(ledger, cluster)
    for _ in range(2):  # asked again, there is nothing to do, and it still may not be stopped
        result = run(plan, ledger, cluster)
        assert result.exit_code == 0
        assert result.goal_outcome == "in part"
        why = f"clients use {BASKET}, which came meanwhile: plan and apply once more"
        assert result.sentence.endswith(why)
        [last] = ledger.events(digest_of(plan), count=1)
        assert (last.kind, last.run_id, last.detail) == ("not drained", result.run, why)
        assert not_drained(ledger, runs_on(ledger, plan.cluster)) == {result.run: why}


def test_a_drained_broker_that_clients_have_left_meanwhile_may_be_stopped(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = drained(ledger, cluster)
    run(plan, ledger, cluster)
    del cluster.owners[BASKET]
    assert run(plan, ledger, cluster).goal_outcome == "reached"
    assert not_drained(ledger, runs_on(ledger, plan.cluster)) == {}


def test_a_drained_broker_without_clients_is_empty(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = drained(ledger, cluster)
    del cluster.owners[BASKET]
    assert run(plan, ledger, cluster).goal_outcome == "reached"


def test_a_broker_that_can_not_be_looked_at_may_not_be_stopped(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = drained(ledger, cluster)

    def unreachable(_broker: str) -> frozenset[str]:
        raise ClusterUnreachable("connection refused")

    cluster.reported_bundles = unreachable  # type: ignore[method-assign]
    result = run(plan, ledger, cluster)
    assert (result.outcome, result.goal_outcome) == ("done", "in part")
    assert "clients use anything there: connection refused" in result.sentence


def test_a_broker_of_another_cluster_was_not_looked_at(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = drained(ledger, cluster)
    assert run(plan, ledger, cluster).goal_outcome == "in part"
    cluster.name, cluster.brokers, cluster.owners = "staging", {"10.9.9.9:8080"}, {}
    result = run(plan, ledger, cluster)
    assert (result.outcome, result.goal_outcome) == ("nothing_to_do", "in part")
    assert "there: the plan is for cluster 'live', but the brokers reached say 'staging'" in result.sentence
