"""What Pulsar's own balancer would do with a change of its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.base_load import BaseLoad, base_load
from pulsar_advisor.planning.requests.what_if import Resolve
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation.foresight import left_alone
from pulsar_advisor.simulation.scores import Ending, cycle_scores, simulation_score
from pulsar_advisor.simulation.simulate import Simulation, simulate
from pulsar_advisor.simulation.trials import MOST_TRIED, Trial, compared, trials
from unit.simulation.clusters import EVERY_LOAD_COUNTS, cluster

IDLE_BROKER = cluster({**{f"b{number}": [40.0, 40.0] for number in range(10)}, "idle": []})
LOWER_BOUNDARY = {"lowerBoundarySheddingEnabled": "true"}


def resolve(what_if: Mapping[str, str]) -> ResolvedSettings:
    return resolve_settings("4.0.8", what_if={**EVERY_LOAD_COUNTS, **what_if})


def idle_broker(what_if: Mapping[str, str] = {}) -> Situation:
    return Situation.of_fit(IDLE_BROKER, resolve(what_if))


def tried(
    changes: Sequence[Mapping[str, str]], state: ClusterState, resolve: Resolve, alone: Simulation | None = None
) -> Sequence[Trial]:
    return trials(changes, Situation.of_fit(state, resolve({})), resolve, alone=alone)


def test_a_change_is_simulated_with_the_strategies_it_configures() -> None:
    overload = {
        "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder",
        "loadBalancerBrokerOverloadedThresholdPercentage": "79",
    }
    lower, other = tried([LOWER_BOUNDARY, overload], IDLE_BROKER, resolve)
    assert lower.score is not None and other.score is not None
    assert lower.score.unloads > 0
    assert lower.score.first_usage_maximum_ratio == pytest.approx(0.8)
    assert other.score.unloads > 0
    assert lower.score.last_usage_standard_deviation_ratio < 0.23


def test_each_change_is_tried_once_and_only_the_first_few() -> None:
    minima = [{"loadBalancerBundleUnloadMinThroughputThreshold": str(number)} for number in range(9)]
    found = tried([{}, LOWER_BOUNDARY, LOWER_BOUNDARY, *minima], IDLE_BROKER, resolve)
    assert len(found) == MOST_TRIED
    assert [one.change for one in found[:2]] == [LOWER_BOUNDARY, minima[0]]


def test_a_strategy_that_is_not_modelled_is_said() -> None:
    (found,) = tried([{"loadBalancerLoadSheddingStrategy": "com.example.Own"}], IDLE_BROKER, resolve)
    assert found.score is None
    assert found.error is not None and "there is no shedder 'Own'" in found.error


def test_what_keeps_pulsar_from_shedding_with_a_change_is_known() -> None:
    def off(what_if: Mapping[str, str]) -> ResolvedSettings:
        return resolve({"loadBalancerSheddingEnabled": "false", **what_if})

    still_off, on = tried([LOWER_BOUNDARY, {"loadBalancerSheddingEnabled": "true"}], IDLE_BROKER, off)
    assert still_off.switched_off_by == ("loadBalancerSheddingEnabled",)
    assert on.switched_off_by == ()


def of_idle_broker(maximum: float | None = None, **given: object) -> Ending:
    """Settles at 80 %, without an unload; `given` replaces figures, `maximum` that of the busiest broker at the end."""
    own = simulate("ThresholdShedder", "LeastLongTermMessageRate", idle_broker(), cycles=60)
    score = simulation_score(own, cycle_scores(own))
    if maximum is not None:
        score = replace(score, last_usage_maximum_ratio=maximum)
    return replace(score, **given)  # type: ignore[arg-type]


def test_a_change_is_compared_with_today_under_the_same_seed() -> None:
    threshold = "loadBalancerBrokerThresholdShedderPercentage"

    def far_apart(what_if: Mapping[str, str]) -> ResolvedSettings:
        return resolve({threshold: "70", **what_if})

    state = cluster({"a": [10.0] * 8, "b": [], "c": [10.0]})
    found, none = tried([{threshold: "10"}, {"minUnloadMessage": "1"}], state, far_apart)
    assert found.today is not None and found.score is not None
    assert (found.today.unloads, found.verdict) == (0, "better")
    assert found.score.last_usage_maximum_ratio < 0.7 < found.today.last_usage_maximum_ratio
    assert none.verdict == "same"


def test_a_change_that_only_some_draws_like_better_is_not_proposed() -> None:
    by_usage = "org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight"  # draws among many brokers
    change = {"loadBalancerBrokerThresholdShedderPercentage": "9"}

    def drawing(what_if: Mapping[str, str]) -> ResolvedSettings:
        return resolve({"loadBalancerLoadPlacementStrategy": by_usage, **what_if})

    state = cluster({"a": [10.0, 15.0, 10.0, 15.0, 10.0, 10.0], "b": [15.0], "c": [10.0, 15.0], "d": [10.0]})
    first, second = (compared(*(draw(state, drawing(it), seed) for it in ({}, change))) for seed in (0, 1))
    assert (first, second) == ("better", "worse")
    (found,) = tried([change], state, drawing)
    assert found.verdict == "worse"
    assert found.today is not None and found.score is not None
    assert compared(found.today, found.score) == "worse"  # of the draw that is shown


def draw(state: ClusterState, of: ResolvedSettings, seed: int) -> Ending:
    found = left_alone(Situation.of_fit(state, of), seed)
    return simulation_score(found, cycle_scores(found))


def test_a_change_that_never_ends_and_relieves_no_one_is_worse_than_nothing() -> None:
    (found,) = tried([LOWER_BOUNDARY], IDLE_BROKER, resolve)
    assert found.verdict == "worse"
    assert found.today is not None
    assert found.today.unloads == 0


def test_switching_shedding_on_is_compared_with_a_cluster_that_sheds_nothing() -> None:
    def switched_off(what_if: Mapping[str, str]) -> ResolvedSettings:
        return resolve({**LOWER_BOUNDARY, "loadBalancerSheddingEnabled": "false", **what_if})

    switch, other = tried(
        [{"loadBalancerSheddingEnabled": "true"}, {"minUnloadMessage": "1"}], IDLE_BROKER, switched_off
    )
    assert switch.today is not None and switch.score is not None and other.today is not None
    assert (switch.today.unloads, switch.switched_off_by) == (0, ())
    assert other.today.unloads == switch.score.unloads > 0
    assert other.switched_off_by == ("loadBalancerSheddingEnabled",)


def test_the_worse_end_refutes_what_the_likely_one_promises() -> None:
    today = of_idle_broker(unloads=3, lowest_maximum_ratio=0.7, highest_maximum_ratio=0.82)
    assert compared(today, replace(today, unloads=2)) == "better"
    assert compared(today, replace(today, worst_ended="repeats")) == "worse"
    lower = of_idle_broker(unloads=3, maximum=0.6, lowest_maximum_ratio=0.5, highest_maximum_ratio=0.9)
    assert compared(today, lower) == "worse"
    assert compared(today, replace(lower, highest_maximum_ratio=0.82)) == "better"


def test_to_settle_is_better_and_not_to_settle_is_worse() -> None:
    settled = of_idle_broker(unloads=3)
    unfinished = replace(settled, ended="unfinished", worst_ended="unfinished")
    assert (compared(unfinished, settled), compared(settled, unfinished)) == ("better", "worse")


def test_that_nothing_happens_is_no_merit_where_the_busiest_broker_would_be_relieved() -> None:
    nothing = of_idle_broker()
    assert compared(nothing, of_idle_broker(unloads=5, maximum=0.6, worst_ended="unfinished")) == "better"
    assert compared(nothing, of_idle_broker(unloads=5, worst_ended="unfinished")) == "worse"
    nothing, at_worst = (of_idle_broker(lowest_maximum_ratio=0.8, highest_maximum_ratio=0.8),) * 2
    relieved = replace(at_worst, unloads=5, last_usage_maximum_ratio=0.6, lowest_maximum_ratio=0.5)
    assert compared(nothing, replace(relieved, worst_ended="unfinished")) == "better"
    assert compared(nothing, replace(relieved, worst_ended="unfinished", highest_maximum_ratio=0.9)) == "worse"


def test_that_less_counts_as_usage_relieves_no_broker() -> None:
    today = of_idle_broker(maximum=0.92, first_usage_maximum_ratio=0.92)
    without_memory = of_idle_broker(maximum=0.4, first_usage_maximum_ratio=0.4)
    assert compared(today, without_memory) == "same"
    assert compared(today, replace(without_memory, last_usage_maximum_ratio=0.3)) == "better"
    assert compared(replace(today, unloads=1), without_memory) == "better"


def test_what_was_found_of_the_cluster_left_alone_is_not_simulated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    own = resolve({}).values
    alone = left_alone(idle_broker(), 0)
    without = tried([LOWER_BOUNDARY], IDLE_BROKER, resolve)
    monkeypatch.setattr("pulsar_advisor.simulation.trials.simulate", changed_only(own))
    assert tried([LOWER_BOUNDARY], IDLE_BROKER, resolve, alone=alone) == without


def test_with_the_switch_alone_a_cluster_evolves_as_found_of_it_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    off = {**LOWER_BOUNDARY, "loadBalancerSheddingEnabled": "false"}

    def switched_off(what_if: Mapping[str, str]) -> ResolvedSettings:
        return resolve({**off, **what_if})

    switch, alone = {"loadBalancerSheddingEnabled": "true"}, left_alone(idle_broker(off), 0)
    without = tried([switch], IDLE_BROKER, switched_off)
    simulated: list[bool] = []

    def recorded(*cluster: Any, sheds: bool, **more: Any) -> Simulation:
        simulated.append(sheds)
        return simulate(*cluster, sheds=sheds, **more)

    monkeypatch.setattr("pulsar_advisor.simulation.trials.simulate", recorded)
    assert tried([switch], IDLE_BROKER, switched_off, alone=alone) == without
    assert simulated == [False]


def test_the_base_load_of_today_is_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[ClusterState] = []

    def recorded(state: ClusterState, earlier: Sequence[ClusterState]) -> BaseLoad:
        fitted.append(state)
        return base_load(state, earlier)

    monkeypatch.setattr("pulsar_advisor.planning.situation.base_load", recorded)
    today = idle_broker()
    left_alone(today, 0)
    trials([{"minUnloadMessage": "1"}], today, resolve)
    assert len(fitted) == 1 + 1  # of the change


def changed_only(own: LoadBalancerSettings) -> Callable[..., Simulation]:
    def simulated(shedder: str, placement: str, situation: Situation, **more: Any) -> Simulation:
        assert situation.settings.values != own
        return simulate(shedder, placement, situation, **more)

    return simulated
