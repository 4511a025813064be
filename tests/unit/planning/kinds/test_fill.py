"""fill: a new broker gets its share from the busiest ones, and no broker ends above its ceiling because of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from unit.planning.kinds.clusters import SETTINGS, cluster, executable, host, planned
from unit.properties import examples

TEN_BUSY = {**{f"b{number}": [4.0] * 20 for number in range(10)}, "new": []}


def test_ten_brokers_at_80_percent_and_one_at_0() -> None:
    """The mean is 72.7 %: ThresholdShedder does nothing, and the idle broker stays idle (PIP-220)."""
    state = cluster(TEN_BUSY)
    request = Request(shedder="ThresholdShedder", placement="LeastLongTermMessageRate", splits=False)
    [(_, shedder)] = propose(request, Situation.of_fit(state, SETTINGS))
    assert not shedder.moves
    plan = planned(state, Goal("fill", ("new",)))
    after = {host(broker): row.usage_ratio or 0.0 for broker, row in plan.predicted.after.brokers.items()}
    assert after.pop("new") == pytest.approx(0.72)
    assert max(after.values()) == pytest.approx(0.76)
    assert min(after.values()) == pytest.approx(0.72)
    assert len(executable(plan)) == 18


def test_the_largest_bundles_that_fit_come_first() -> None:
    plan = planned(cluster({"a": [40, 30, 20, 10], "new": []}), Goal("fill", ("new",)))
    assert [step.namespace for step in plan.steps] == ["t/a-0", "t/a-3"]


def test_up_to_a_chosen_usage() -> None:
    plan = planned(cluster(TEN_BUSY), Goal("fill", ("new",), 0.3))
    assert plan.predicted.after.brokers["new:8080"].usage_ratio == pytest.approx(0.28)


def test_a_bundle_that_reaches_exactly_the_target_fits() -> None:
    """30 of 100 is 30.000002 % in Pulsar's binary32."""
    plan = planned(cluster({"a": [30, 30, 30], "new": []}), Goal("fill", ("new",), 0.3))
    assert plan.predicted.after.brokers["new:8080"].usage_ratio == pytest.approx(0.3)


def test_the_share_is_of_the_mean_of_brokers_whose_usage_is_known() -> None:
    """To Pulsar one without a CPU limit is idle."""
    state = cluster({"a": [10] * 8, "unlimited": [10] * 8, "new": []}, limits={"unlimited": 0.0})
    plan = planned(state, Goal("fill", ("new",)))
    assert plan.decision.figures["target_ratio"] == pytest.approx(0.4)


def test_two_new_brokers_share() -> None:
    plan = planned(cluster({"a": [10] * 8, "x": [], "y": []}), Goal("fill", ("x", "y")))
    brokers = [host(step.destination) for step in plan.steps]
    assert (brokers.count("x"), brokers.count("y")) == (2, 2)


def test_a_reserved_broker_takes_nothing_and_the_plan_says_why() -> None:
    policy = IsolationPolicy("vip", ("vip/.*",), ("new",), (), 1, 100)
    plan = planned(cluster({"a": [30, 40], "new": []}, policies=[policy]), Goal("fill", ("new",)))
    assert not plan.steps
    why = plan.decision.why_nothing or ""
    assert why.startswith("t/a-1/0x00000000_0xffffffff may not go there: "), "the largest one"
    assert "new:8080: reserved: primary in an isolation policy" in why


def test_the_reason_is_that_of_the_filled_broker_however_many_others_there_are() -> None:
    policy = IsolationPolicy("vip", ("vip/.*",), ("new",), (), 1, 100)
    state = cluster({"a": [30, 40], "b": [], "c": [], "d": [], "new": []}, policies=[policy])
    assert planned(state, Goal("fill", ("new",))).decision.why_nothing == (
        "t/a-1/0x00000000_0xffffffff may not go there: new:8080: reserved: primary in an isolation policy, and the "
        "namespace has none"
    )


def test_a_bundle_that_may_not_go_there_is_not_the_reason_where_another_may_and_is_too_large() -> None:
    policy = IsolationPolicy("vip", ("t/a-0",), ("a",), (), 1, 100)
    plan = planned(cluster({"a": [40, 30], "new": []}, policies=[policy]), Goal("fill", ("new",), 0.2))
    assert (plan.decision.why_nothing or "").startswith("no bundle is small enough")


@pytest.mark.parametrize(
    ("brokers", "target", "why"),
    [
        ({"a": [40], "new": [20]}, 0.2, "its usage of 20.0% has reached 20.0%"),
        ({"a": [40], "new": [20]}, 0.21, "no bundle is small enough"),
        ({"a": [], "new": [20]}, 0.3, "no other broker has a bundle that may move"),
    ],
)
def test_where_nothing_moves_it_says_why(brokers: dict[str, list[float]], target: float, why: str) -> None:
    plan = planned(cluster(brokers), Goal("fill", ("new",), target))
    assert not plan.steps
    assert (plan.decision.why_nothing or "").startswith(why)


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("available", False, "it isn't active, or its figures are incomplete or unfit"),
        ("complete", False, "it isn't active, or its figures are incomplete or unfit"),
        ("doubtful", True, "validation doubts what is known of it"),
        ("limit", 0.0, "it reports no CPU limit"),
    ],
)
def test_of_a_broker_that_takes_nothing_it_says_why(column: str, value: float, why: str) -> None:
    state = cluster({"a": [20, 20, 20], "b": [20], "new": []})
    getattr(state.brokers, column)[2] = value
    plan = planned(state, Goal("fill", ("new",)))
    assert plan.decision.why_nothing == f"new:8080 takes nothing: {why}"


def test_of_a_broker_that_the_request_excludes_it_says_so() -> None:
    plan = planned(cluster({"a": [20, 20], "new": []}), Goal("fill", ("new",)), exclude_brokers=("new:8080",))
    assert plan.decision.why_nothing == "new:8080 takes nothing: the request excludes it"


def test_one_large_bundle_is_not_passed_around() -> None:
    plan = planned(cluster({"a": [60], "new": []}), Goal("fill", ("new",), 0.8))
    assert (plan.decision.why_nothing or "").startswith("no bundle is small enough")


@given(sizes=st.lists(st.lists(st.integers(1, 30), max_size=5), min_size=1, max_size=4))
@examples(60)
def test_the_filled_broker_ends_within_the_mean_and_no_broker_above_the_busiest(sizes: list[list[int]]) -> None:
    state = cluster({**{f"b{number}": own for number, own in enumerate(sizes)}, "new": []})
    plan = planned(state, Goal("fill", ("new",)))
    after = {host(broker): row.usage_ratio or 0.0 for broker, row in plan.predicted.after.brokers.items()}
    mean = sum(map(sum, sizes)) / 100 / (len(sizes) + 1)
    assert after["new"] <= mean + 1e-6
    for step in executable(plan):
        assert host(step.destination) == "new"
    assert (plan.predicted.after.maximum_ratio or 0) <= (plan.predicted.before.maximum_ratio or 0) + 1e-6
