"""What could be done, best first."""

from __future__ import annotations

from dataclasses import replace

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.planning.advice.compare import Score, no_score
from pulsar_advisor.planning.advice.options import Balancing, Option, ranked_options
from pulsar_advisor.planning.proposals.configured import Configured
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.merit import Cost, Merit
from pulsar_advisor.planning.usage.noise import NoiseFloor
from states import BrokerRow, cluster_state

OWN = Configured("ThresholdShedder", "LeastLongTermMessageRate")
AS_IS = Merit(0.9, 0.9, 0.3, Cost())


def situation(overloaded_percent: str = "95", as_is: Merit | None = AS_IS) -> Situation:
    """A cluster of which only this is known."""
    settings = resolve_settings(
        "4.0.8", what_if={"loadBalancerBrokerOverloadedThresholdPercentage": overloaded_percent}
    )
    found = Situation.of(cluster_state([BrokerRow("a:8080")], []), settings)
    vars(found).update(configured=OWN, as_is=as_is, noise=NoiseFloor(0.02, "history"))
    return found


GIVEN = situation()


def plan(shedder: str, after: float, steps: str = "", **given: object) -> Score:
    figures = {
        "plan": f"{shedder}.json",
        "digest": f"sha256:{shedder}",
        "steps": 1,
        "unloads": 1,
        "maximum_before": 0.9,
        "maximum_after": after,
        "standard_deviation_after": 0.1,
        "topics": 10,
        "confidence": "high",
        "steps_sha256": steps or shedder,
        "error": None,
    }
    return replace(no_score(shedder, OWN.placement, ""), **{**figures, **given})


def by_pulsar(after: float, settles: bool = True, **change: str) -> Balancing:
    merit = Merit(after, None, 0.1, Cost(unloads=2, topics=20))
    return Balancing(change, "settles in cycle 3", settles, AS_IS.maximum_ratio, merit, "the load stays as it is")


def kinds(options: tuple[Option, ...]) -> list[str]:
    return [option.kind for option in options]


def test_there_are_at_most_four_options_each_of_another_kind() -> None:
    found = ranked_options(
        GIVEN,
        [plan("A", 0.6), plan("B", 0.7, topics=5), plan("C", 0.9, unloads=0, splits=1, topics=0)],
        [by_pulsar(0.5), by_pulsar(0.4, lowerBoundarySheddingEnabled="true")],
    )
    assert kinds(found) == ["move", "setting", "split", "nothing"]
    assert found[0].digest == "sha256:A"
    assert found[1].sentence == "Set lowerBoundarySheddingEnabled=true: Pulsar's balancer settles in cycle 3"


def test_a_plan_within_limits_is_not_all_that_its_strategy_would_do() -> None:
    first, *_ = ranked_options(GIVEN, [plan("A", 0.6)], [], limited=True)
    assert first.sentence.endswith(f"as A with {OWN.placement} would within the limits")


def test_of_what_pulsar_would_reach_but_for_noise_the_fewest_changes_are_an_option() -> None:
    found = ranked_options(GIVEN, [], [by_pulsar(0.6, lowerBoundarySheddingEnabled="true"), by_pulsar(0.61)])
    assert kinds(found) == ["own_balancer", "nothing"]
    assert found[1].condition == "the busiest broker has room for the load to come"


def test_what_pulsar_would_gain_counts_from_the_noise_floor_on() -> None:
    changed = by_pulsar(0.875, lowerBoundarySheddingEnabled="true")
    assert kinds(ranked_options(GIVEN, [], [by_pulsar(0.89), changed])) == ["setting", "nothing"]


def test_what_a_plan_reaches_at_no_greater_cost_is_no_option() -> None:
    dear = by_pulsar(0.59)
    cheap = replace(dear, merit=replace(dear.merit, cost=Cost(unloads=1, topics=9)))
    assert kinds(ranked_options(GIVEN, [plan("A", 0.6)], [dear])) == ["move", "nothing"]
    assert kinds(ranked_options(GIVEN, [plan("A", 0.6)], [cheap])) == [
        "move",
        "own_balancer",
        "nothing",
    ]


def test_a_plan_that_splits_comes_first_only_if_it_reaches_more() -> None:
    move, split = plan("A", 0.6), plan("BundleSplitterTask", 0.5, splits=1)
    assert kinds(ranked_options(GIVEN, [move, split], [])) == ["split", "move", "nothing"]
    no_better = replace(split, maximum_after=0.59)
    assert kinds(ranked_options(GIVEN, [move, no_better], [])) == ["move", "split", "nothing"]


def test_combinations_with_the_same_steps_are_one_option() -> None:
    found = ranked_options(GIVEN, [plan("A", 0.6, "same"), plan("B", 0.6, "same"), plan("C", 0.6)], [])
    assert found[0].strategies == (f"A with {OWN.placement}", f"B with {OWN.placement}")


def test_a_gain_below_the_noise_floor_is_no_option() -> None:
    found = ranked_options(GIVEN, [plan("A", 0.89, unloads=200)], [by_pulsar(0.89)])
    assert kinds(found) == ["nothing"]
    assert (
        found[0].condition
        == "a fall of less than 2.0 points, the difference between two snapshots, isn't worth a disturbance"
    )


def test_to_leave_a_broker_above_the_threshold_is_not_called_room() -> None:
    *_, nothing = ranked_options(situation("85"), [plan("A", 0.6)], [])
    assert nothing.condition == "clients can bear a broker above the overload threshold of 85%"


def test_what_does_not_settle_is_no_option() -> None:
    assert kinds(ranked_options(GIVEN, [], [by_pulsar(0.5, settles=False)])) == ["nothing"]


def test_a_plan_that_only_splits_comes_before_nothing() -> None:
    split = plan("A", 0.9, unloads=0, splits=1, topics=0)
    found = ranked_options(GIVEN, [split], [])
    assert kinds(found) == ["split", "nothing"]
    assert found[0].sentence == f"Split 1 bundle as A with {OWN.placement} would"


def test_without_figures_of_the_cluster_there_are_no_options() -> None:
    assert ranked_options(situation(as_is=None), [], []) == ()


def test_the_worse_end_of_pulsars_balancer_is_that_of_its_option() -> None:
    likely = by_pulsar(0.5)
    worst = replace(likely, merit=replace(likely.merit, highest_maximum_ratio=0.65))
    first, _ = ranked_options(GIVEN, [], [worst])
    assert (first.kind, first.highest_maximum_ratio) == ("own_balancer", 0.65)
