"""Simulations in words and lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.reporting.futures import cells, effect_sentence, futures, lines, name, notes, own_sentence
from pulsar_advisor.simulation.trials import Trial
from unit.reporting.scores import OWN, not_simulated, plain, score


def test_the_own_strategies_come_first_then_those_that_settle_then_the_lower_usage() -> None:
    rows = [
        score("UniformLoadShedder", last_usage_maximum_ratio=0.55),
        score("AvgShedder", ended="repeats", repeats_cycle=3, last_usage_maximum_ratio=0.3),
        score("OverloadShedder", last_usage_maximum_ratio=0.5),
        score(),
    ]
    order = [future.shedder for future in futures(rows, OWN)]
    assert order == ["ThresholdShedder", "OverloadShedder", "UniformLoadShedder", "AvgShedder"]


def test_placement_strategies_that_make_no_difference_share_a_line() -> None:
    rows = [score(placement=entry.name) for entry in PLACEMENTS]
    [future] = futures(rows, OWN)
    assert name(future) == "ThresholdShedder with any placement (the cluster's own)"
    assert future.ends == "settles in cycle 2 (1 min)"
    assert len(futures([*rows[:-1], score(placement=PLACEMENTS[-1].name, unloads=9)], OWN)) == 2


def test_runs_with_other_seeds_are_one_line_with_ranges() -> None:
    rows = [score(seed=0), score(seed=1, settles_in_cycles=4, unloads=6, last_usage_maximum_ratio=0.7)]
    [future] = futures(rows, OWN)
    assert future.ends == "settles in cycle 2 to 4"
    assert [plain(cell) for cell in cells(future)[:4]] == ["~60.0\N{EN DASH}70.0%", "10.0%", "0", "2\N{EN DASH}6"]


def test_runs_that_end_differently_are_counted() -> None:
    rows = [score(seed=0), score(seed=1, ended="repeats"), score(seed=2)]
    assert futures(rows, OWN)[0].ends == "settles in 2 of 3 runs, oscillates in 1 of 3 runs"
    failed = not_simulated(OWN.shedder, "none")
    assert futures([rows[0], failed], OWN)[0].ends == "settles in 1 of 2 runs, could not be simulated in 1 of 2 runs"


def test_runs_that_ended_too_early_to_tell_say_at_which_cycle() -> None:
    rows = [score(seed=seed, ended="unfinished", cycles=20) for seed in (0, 1)]
    assert futures(rows, OWN)[0].ends == "has not settled by cycle 20 in 2 of 2 runs"


def test_runs_that_may_end_worse_say_so() -> None:
    rows = [score(seed=0), score(seed=1, worst_ended="repeats"), score(seed=2, worst_ended="unfinished")]
    assert futures(rows, OWN)[0].ends == "settles in cycle 2; may oscillate"
    idle = score(unloads=0, settles_in_cycles=0, worst_ended="repeats")
    assert futures([idle, idle], OWN)[0].ends == "nothing happens; may oscillate"
    assert "as it is, or oscillate, depending on how much CPU follows" in plain(own_sentence([idle], OWN))


def test_a_sentence_about_one_of_several_runs_that_differ_says_so() -> None:
    alike, other = [score(seed=0), score(seed=1)], score(seed=2, unloads=5)
    assert own_sentence(alike, OWN) == own_sentence(alike[:1], OWN)
    assert ", in the first of 3 runs, would settle in cycle 2" in plain(own_sentence([*alike, other], OWN))


def test_how_one_run_ends_in_words() -> None:
    def ends(**given: Any) -> str:
        return futures([score(**given)], OWN)[0].ends

    assert ends(unloads=0, settles_in_cycles=0) == "nothing happens"
    assert ends(ended="repeats", cycles=9, repeats_cycle=3) == "oscillates: cycle 9 ends as cycle 3 did"
    assert ends(ended="unfinished", cycles=120) == "has not settled by cycle 120"
    [future] = futures([not_simulated("AvgShedder", "no load is known")], OWN)
    assert future.ends == "could not be simulated: no load is known"


def test_what_pulsars_own_strategies_would_do_is_one_sentence() -> None:
    assert plain(own_sentence([score(brokers_overshot=2, bundles_moved_again=1)], OWN)) == (
        "Pulsar's own ThresholdShedder with LeastLongTermMessageRate would settle in cycle 2 (1 min): after 2 unloads "
        "the busiest broker is at 60.0%, now at 67.0%; bundles moved more than once: 1; brokers that cross "
        "the mean and end further from it than now: 2."
    )
    assert own_sentence([score(unloads=0)], OWN) == (
        "Pulsar's own ThresholdShedder with LeastLongTermMessageRate would leave the cluster as it is."
    )
    never: dict[str, Any] = {"settles_in_cycles": None, "settles_in_minutes": None}
    assert "would not have settled by cycle 45" in plain(own_sentence([score(ended="unfinished", **never)], OWN))
    assert "would oscillate" in plain(own_sentence([score(ended="repeats", repeats_cycle=1, **never)], OWN))


def test_without_the_own_strategies_there_is_no_such_sentence() -> None:
    assert own_sentence([score("OverloadShedder"), score(what_if="a=b")], OWN) is None


def test_names_are_never_cut_and_no_line_is_wider_than_the_terminal() -> None:
    one, other = (
        score("TransferShedder", "extensions.LeastResourceUsageWithWeight"),
        not_simulated("AvgShedder", "none"),
    )
    heading, *rest = "\n".join(lines(futures([score(), one, other], OWN))).splitlines()
    text = " ".join(" ".join(rest).split())
    assert "TransferShedder with extensions.LeastResourceUsageWithWeight: settles in cycle 2" in text
    assert "AvgShedder with LeastLongTermMessageRate: could not be simulated: none" in text
    assert max(map(len, (heading, *rest))) <= 80
    figures = next(line for line in rest if "%" in line)
    assert (figures.index("%"), figures.rindex("7")) == (heading.index("usage") + 4, heading.rindex("s"))


def test_values_of_a_grid_are_in_the_order_of_numbers() -> None:
    rows = [score("AvgShedder", what_if=f"minUnloadMessage={value}") for value in (10, 20, 5)]
    assert [future.what_if.partition("=")[2] for future in futures(rows, OWN)] == ["5", "10", "20"]
    rows = [score("AvgShedder", what_if=f"loadBalancerOverrideBrokerNics={name}") for name in ("m2²", "m1²")]
    assert [future.what_if[-3:] for future in futures(rows, OWN)] == ["m1²", "m2²"]


def test_where_only_a_setting_varies_its_values_keep_their_order_whatever_comes_of_them() -> None:
    ends = {"10": {}, "20": {}, "5": {"ended": "unfinished", "settles_in_cycles": None, "settles_in_minutes": None}}
    rows = [score("AvgShedder", what_if=f"minUnloadMessage={value}", **given) for value, given in ends.items()]
    assert [future.what_if.partition("=")[2] for future in futures(rows, OWN)] == ["5", "10", "20"]


def test_a_range_comes_from_both_ends_and_the_worse_one_refutes_that_it_settles() -> None:
    between = {"lowest_maximum_ratio": 0.55, "highest_maximum_ratio": 0.72}
    rows = [score("UniformLoadShedder", **between), score("AvgShedder", **between, worst_ended="repeats")]
    sure, unsure = futures(rows, OWN)
    assert plain(cells(sure)[0]) == "55.0\N{EN DASH}72.0%"
    assert (unsure.shedder, unsure.ends) == ("AvgShedder", "settles in cycle 2 (1 min); may oscillate")
    sentence = plain(own_sentence([score(**between, worst_ended="unfinished")], OWN))
    assert "would settle in cycle 2 (1 min), or not settle, depending on how much CPU follows messages: " in sentence
    assert "is at 60.0% (55.0% to 72.0%, depending on how much CPU follows messages), now at 67.0%" in sentence


def test_a_change_is_shown_beside_today() -> None:
    trial = Trial(change={"a": "1"}, error=None, score=score(unloads=9), today=score(), verdict="worse")
    assert plain(effect_sentence(trial)) == (
        "worse than today in one simulation: with a=1, Pulsar's own balancer settles in cycle 2 (1 min) after 9 "
        "unloads, highest usage 67.0% → 60.0%, standard deviation 10.0%; without it, it settles in cycle 2 (1 min) "
        "after 2 unloads, highest usage 67.0% → 60.0%, standard deviation 10.0%"
    )
    placement = "org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector"
    wide = replace(trial, change={"b": placement}, score=score(lowest_maximum_ratio=0.55, highest_maximum_ratio=0.72))
    assert "with b=RoundRobinBrokerSelector, " in plain(effect_sentence(wide))
    assert "highest usage 67.0% → 55.0% to 72.0%, standard" in plain(effect_sentence(wide))
    splits = replace(trial, score=score(unloads=0, splits=3))
    assert "settles in cycle 2 (1 min) after 3 splits, highest usage" in plain(effect_sentence(splits))
    better = replace(trial, verdict="better")
    assert effect_sentence(better).startswith("better than today: with it, Pulsar's own ")
    doubted = replace(trial, score=score(worst_ended="unfinished"))
    assert "(1 min) after 2 unloads, but may not settle, highest usage" in plain(effect_sentence(doubted))
    other_weights = replace(trial, score=score(first_usage_maximum_ratio=0.3))
    assert effect_sentence(other_weights).endswith("; usage counts differently with it")
    measured = replace(other_weights, verdict="same")  # what it mends is the measure: "no better" would refute that
    assert effect_sentence(measured).startswith("balances as today, but usage counts differently: with a=1, ")
    not_compared = replace(trial, verdict=None)
    assert effect_sentence(not_compared).endswith("; today's own strategies can't be simulated, so nothing is compared")
    assert effect_sentence(Trial.failed({"a": "1"}, DataNotFit("Too little is fit."))) == "no result: Too little is fit"
    of_an_earlier_release = Trial(change={"a": "1"}, error=None, score=score())
    assert effect_sentence(of_an_earlier_release).startswith("with it, Pulsar's own balancer settles")


def test_the_marks_of_the_table_are_explained_where_it_has_any() -> None:
    def explained(lowest: float | None, highest: float | None) -> list[str]:
        found = futures([score(lowest_maximum_ratio=lowest, highest_maximum_ratio=highest)], OWN)
        return [note.partition(":")[0] for note in notes(found)]

    assert explained(0.6, 0.6) == []
    assert explained(0.5, 0.7) == ["highest usage"]
    assert explained(None, None) == ["~ covers the likely base loads only"]


def test_splits_are_something_that_happens() -> None:
    alone = score(unloads=0, splits=3)
    [future] = futures([alone], OWN)
    assert plain(future.ends) == "settles in cycle 2 (1 min)"
    assert "(1 min): after 3 splits the busiest broker is at 60.0%" in plain(own_sentence([alone], OWN))
