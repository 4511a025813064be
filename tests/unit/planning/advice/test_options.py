"""What could be done, best first."""

from __future__ import annotations

from dataclasses import replace

from pulsar_advisor.planning.advice.compare import Cost, Score, no_score
from pulsar_advisor.planning.advice.options import Balancing, Option, ranked_options
from pulsar_advisor.planning.proposals.configured import Configured

OWN = Configured("ThresholdShedder", "LeastLongTermMessageRate")
FLOOR = 0.02
NOW = (0.9, 0.3)
OVERLOADED = 0.95
GIVEN = (FLOOR, NOW, OVERLOADED)


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
    cost = Cost(unloads=2, topics=20)
    return Balancing(change, "settles in cycle 3", settles, NOW[0], after, 0.1, cost, "the load stays as it is")


def kinds(options: tuple[Option, ...]) -> list[str]:
    return [option.kind for option in options]


def test_there_are_at_most_four_options_each_of_another_kind() -> None:
    found = ranked_options(
        [plan("A", 0.6), plan("B", 0.7, topics=5), plan("C", 0.9, unloads=0, splits=1, topics=0)],
        OWN,
        [by_pulsar(0.5), by_pulsar(0.4, lowerBoundarySheddingEnabled="true")],
        *GIVEN,
    )
    assert kinds(found) == ["move", "setting", "split", "nothing"]
    assert found[0].digest == "sha256:A"
    assert found[1].sentence == "Set lowerBoundarySheddingEnabled=true: Pulsar's balancer settles in cycle 3"


def test_a_plan_within_limits_is_not_all_that_its_strategy_would_do() -> None:
    first, *_ = ranked_options([plan("A", 0.6)], OWN, [], *GIVEN, limited=True)
    assert first.sentence.endswith(f"as A with {OWN.placement} would within the limits")


def test_of_what_pulsar_would_reach_but_for_noise_the_fewest_changes_are_an_option() -> None:
    found = ranked_options([], OWN, [by_pulsar(0.6, lowerBoundarySheddingEnabled="true"), by_pulsar(0.61)], *GIVEN)
    assert kinds(found) == ["own_balancer", "nothing"]


def test_what_pulsar_would_gain_counts_from_the_noise_floor_on() -> None:
    changed = by_pulsar(0.875, lowerBoundarySheddingEnabled="true")
    assert kinds(ranked_options([], OWN, [by_pulsar(0.89), changed], *GIVEN)) == ["setting", "nothing"]


def test_what_a_plan_reaches_at_no_greater_cost_is_no_option() -> None:
    dear = by_pulsar(0.59)
    cheap = replace(dear, cost=Cost(unloads=1, topics=9))
    assert kinds(ranked_options([plan("A", 0.6)], OWN, [dear], *GIVEN)) == ["move", "nothing"]
    assert kinds(ranked_options([plan("A", 0.6)], OWN, [cheap], *GIVEN)) == [
        "move",
        "own_balancer",
        "nothing",
    ]


def test_a_plan_that_splits_comes_first_only_if_it_reaches_more() -> None:
    move, split = plan("A", 0.6), plan("BundleSplitterTask", 0.5, splits=1)
    assert kinds(ranked_options([move, split], OWN, [], *GIVEN)) == ["split", "move", "nothing"]
    no_better = replace(split, maximum_after=0.59)
    assert kinds(ranked_options([move, no_better], OWN, [], *GIVEN)) == ["move", "split", "nothing"]


def test_combinations_with_the_same_steps_are_one_option() -> None:
    found = ranked_options([plan("A", 0.6, "same"), plan("B", 0.6, "same"), plan("C", 0.6)], OWN, [], *GIVEN)
    assert found[0].strategies == (f"A with {OWN.placement}", f"B with {OWN.placement}")


def test_a_gain_below_the_noise_floor_is_no_option() -> None:
    found = ranked_options([plan("A", 0.89, unloads=200)], OWN, [by_pulsar(0.89)], *GIVEN)
    assert kinds(found) == ["nothing"]
    assert (
        found[0].condition
        == "a fall of less than 2.0 points, the difference between two snapshots, isn't worth a disturbance"
    )


def test_to_leave_a_broker_above_the_threshold_is_not_called_room() -> None:
    *_, nothing = ranked_options([plan("A", 0.6)], OWN, [], FLOOR, NOW, 0.85)
    assert nothing.condition == "clients can bear a broker above the overload threshold of 85%"


def test_what_does_not_settle_is_no_option() -> None:
    assert kinds(ranked_options([], OWN, [by_pulsar(0.5, settles=False)], *GIVEN)) == ["nothing"]


def test_a_plan_that_only_splits_comes_before_nothing() -> None:
    split = plan("A", 0.9, unloads=0, splits=1, topics=0)
    found = ranked_options([split], OWN, [], *GIVEN)
    assert kinds(found) == ["split", "nothing"]
    assert found[0].sentence == f"Split 1 bundle as A with {OWN.placement} would"


def test_without_figures_of_the_cluster_there_are_no_options() -> None:
    assert ranked_options([], OWN, [], FLOOR, None, OVERLOADED) == ()


def test_the_worse_end_of_pulsars_balancer_is_that_of_its_option() -> None:
    worst = replace(by_pulsar(0.5), highest_maximum_ratio=0.65)
    first, _ = ranked_options([], OWN, [worst], FLOOR, NOW, OVERLOADED)
    assert (first.kind, first.highest_maximum_ratio) == ("own_balancer", 0.65)
