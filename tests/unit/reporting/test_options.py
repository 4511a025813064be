"""Options in words: what each brings, costs and rests on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import documents
from pulsar_advisor.planning.advice.options import Option
from pulsar_advisor.planning.proposals.configured import Configured
from pulsar_advisor.planning.usage.merit import Cost
from pulsar_advisor.planning.usage.model_errors import ModelErrors
from pulsar_advisor.reporting.options import NOTHING, Options, cost_text, options_of
from unit.reporting.scores import plain
from unit.reporting.skewed import skewed_inputs

OWN = Configured("ThresholdShedder", "LeastLongTermMessageRate")


def options(**changes: Any) -> Options:
    """Those of the skewed cluster's recommendation, with other fields in it."""
    found = options_of(skewed_inputs().recommending(**changes).recommendation, OWN)
    assert found is not None
    return found


def first_option() -> Option:
    return (skewed_inputs().recommendation.options or ())[0]


def test_the_advice_is_an_option_with_effect_and_cost() -> None:
    (advised,) = [row for row in options().rows if row.advised]
    assert advised.kind == "split"
    assert plain(advised.effect).startswith("highest usage falls from 91.0% to ")
    assert plain(advised.cost).startswith("2 unloads: ")
    assert plain(advised.cost).endswith("; 1 split, which can't be undone")


def test_a_plan_of_unloads_alone_is_compared_with_the_bound_for_moves_of_whole_bundles() -> None:
    option = replace(first_option(), kind="move", maximum_ratio=0.61, gain_ratio=0.3)

    def effect(lowest: float) -> str:
        return plain(options(options=(option,), lowest_maximum_ratio=lowest).rows[0].effect)

    assert effect(0.6).endswith("61.0%, 1.0 points above the bound for moves of whole bundles")
    assert effect(0.61).endswith("61.0%, at the bound for moves of whole bundles")
    assert "bound" not in plain(options().rows[0].effect)


@pytest.mark.parametrize(("worst", "said"), [(0.64, ""), (0.7, " (at worst 70.0%)")])
def test_the_worse_end_is_said_if_it_differs_by_more_than_noise(worst: float, said: str) -> None:
    option = replace(first_option(), maximum_ratio=0.61, gain_ratio=0.3, highest_maximum_ratio=worst)
    assert plain(options(options=(option,)).rows[0].effect) == f"highest usage falls from 91.0% to 61.0%{said}"


def test_doing_nothing_is_the_last_option() -> None:
    last = options().rows[-1]
    assert (last.kind, last.cost) == ("nothing", "nothing is disturbed")
    assert plain(last.effect) == "highest usage stays at 91.0%"


def test_the_notes_say_how_much_figures_vary_and_what_is_possible_at_best() -> None:
    noise, lowest = (plain(note) for note in options().notes)
    assert "Usage varies by 3.0 points from one snapshot to the next" in noise
    assert "too few earlier snapshots" in noise
    assert lowest.startswith("The bound: at the likely base load, no number of moves of whole bundles brings the ")


def test_plans_are_compared_by_disruption_and_balance() -> None:
    found = options().tradeoffs
    assert found[0].name == NOTHING and found[0].on_front
    assert [one.disturbed for one in found] == sorted(one.disturbed for one in found)
    assert sum(one.advised for one in found) == 1


def test_a_plan_has_the_number_of_its_option_wherever_it_is_named() -> None:
    found = options()
    by_name = {one.name: one.label for one in found.tradeoffs}
    for number, option in enumerate(found.rows, 1):
        for name in {NOTHING} if option.kind == "nothing" else by_name.keys() & set(option.strategies):
            assert by_name[name] == str(number)
    assert len(set(by_name.values())) == len(by_name)


def test_a_plan_that_is_no_option_has_a_letter() -> None:
    nothing = [one for one in skewed_inputs().recommendation.options or () if one.kind == "nothing"]
    found = options(options=tuple(nothing))
    assert [one.label for one in found.tradeoffs] == ["1", *"abcdefgh"[: len(found.tradeoffs) - 1]]


def test_a_recommendation_of_an_earlier_release_has_no_options() -> None:
    assert options_of(documents.recommendation(), OWN) is None


def test_a_split_alone_costs_no_clients() -> None:
    assert plain(cost_text(Cost(splits=2))) == "2 splits, which can't be undone"


def test_the_notes_say_how_far_off_predictions_of_cpu_are() -> None:
    errors = ModelErrors(reports=12, proportional_ratio=0.051, base_load_ratio=0.02, calibrated_ratio=0.015)
    assert plain(options(model_errors=errors).notes[-1]) == (
        "A broker's CPU, predicted from its other reports, was off by 2.0 points on average over 12 reports "
        "(base_load, which plans use; proportional: 5.1 points; with a price for each message and byte: 1.5 points)."
    )
