"""The section on what happens next."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console

import documents
from pulsar_advisor.documents.recommendation import Foresight
from pulsar_advisor.reporting.html import render_html
from pulsar_advisor.reporting.markdown import render_markdown
from pulsar_advisor.reporting.terminal import render_terminal
from pulsar_advisor.reporting.whats_next import interference_sentence, whats_next
from pulsar_advisor.simulation.foresight import CycleSeen, Undone
from unit.reporting.reading import read
from unit.reporting.scores import plain, score
from unit.reporting.skewed import balanced_inputs, skewed_inputs

STAYS = {"moved_again": 0, "moved_back": 0, "first_cycle": None, "unloads": 0, "bundles": 0}
PLAN = Undone(**documents.ending(plan_bundles=5, last_usage_maximum_ratio=0.5, **STAYS))
UNDONE = replace(PLAN, unloads=3, moved_again=3, moved_back=2, first_cycle=4)


def foresight(**given: Any) -> Foresight:
    found = Foresight(error=None, cycles=60, own=score(), acting=(CycleSeen(0, 0, 0.67, 0.1),), plan=None)
    return found.model_copy(update=given)


def test_pulsars_own_strategies_come_first() -> None:
    found = whats_next(foresight(plan=PLAN))
    assert found is not None
    assert "would settle in cycle 2" in found.sentences[0]
    assert found.sentences[1].endswith("would do nothing for 60 cycles.")
    assert found.cycles == (CycleSeen(0, 0, 0.67, 0.1),)


def test_a_plan_that_stays_and_one_that_does_not() -> None:
    assert plain(interference_sentence(replace(PLAN, unloads=3, bundles=2), 60)) == (
        "Once the plan is carried out, Pulsar's own balancer would leave its 5 bundles where they are, unload 2 other "
        "bundles and end with the busiest broker at 50.0%."
    )
    assert plain(interference_sentence(UNDONE, 60)) == (
        "Once the plan is carried out, Pulsar's own balancer would undo part of it: from cycle 4 on it would move 3 of "
        "the plan's 5 bundles again, 2 of them back, and end with the busiest broker at 50.0%."
    )
    assert "move 3 of the plan's 5 bundles back, and" in plain(interference_sentence(replace(UNDONE, moved_back=3), 60))


def test_a_balancer_that_only_splits_unloads_nothing_and_one_bundle_stays_where_it_is() -> None:
    assert plain(interference_sentence(replace(PLAN, plan_bundles=1, splits=2), 60)) == (
        "Once the plan is carried out, Pulsar's own balancer would leave its 1 bundle where it is, split 2 bundles and "
        "end with the busiest broker at 50.0%."
    )


def test_of_a_balancer_that_is_switched_off_nothing_is_said_but_under_that_condition() -> None:
    found = whats_next(foresight(plan=UNDONE, switched_off_by=("loadBalancerSheddingEnabled",)))
    assert found is not None
    own, undone = found.sentences
    assert own.startswith(
        "Pulsar itself sheds no load: loadBalancerSheddingEnabled=false. Switched on, its ThresholdShedder with "
        "LeastLongTermMessageRate would settle in cycle 2"
    )
    assert undone.startswith(
        "Once the plan is carried out and loadBalancerSheddingEnabled=true is set, Pulsar's own balancer would undo"
    )


def test_why_nothing_could_be_simulated_is_said() -> None:
    found = whats_next(foresight(error="no load is known", own=None))
    assert found is not None
    assert found.sentences == ("What happens next could not be simulated: no load is known.",)


def test_recommendations_of_earlier_releases_have_no_such_section() -> None:
    assert whats_next(None) is None


def test_every_form_of_the_report_says_what_happens_next() -> None:
    cycles = (CycleSeen(0, 0, 0.91, 0.2), CycleSeen(2, 3, 0.64, 0.1))
    page = skewed_inputs().recommending(foresight=foresight(acting=cycles, plan=PLAN)).page()
    console = Console(file=io.StringIO(), width=200)
    render_terminal(page, console)
    for form in (render_html(page), render_markdown(page)):
        assert "What happens next" in form
        assert "would settle in cycle 2" in form
        assert plain("64.0%") in plain(form)
    assert console.file.getvalue().rstrip().endswith("Pulsar's own balancer would do nothing for 60 cycles.")


def test_pulsar_is_not_said_to_do_nothing_where_it_acts_in_a_later_cycle() -> None:
    inputs = balanced_inputs()
    assert inputs.page().verdict.pulsar == "Pulsar itself would do nothing either"
    assert inputs.recommending(foresight=foresight()).page().verdict.pulsar == ""


def test_the_usage_of_the_brokers_is_shown_cycle_by_cycle() -> None:
    cycles = [
        CycleSeen(number, number, high, 0.1, usage_ratios={"hot:8080": high, "idle:8080": 0.9 - high})
        for number, high in ((0, 0.8), (2, 0.6), (5, 0.5))
    ]
    page = skewed_inputs().recommending(foresight=foresight(acting=tuple(cycles))).page()
    reading = read(render_html(page))
    assert [plain(cell) for cell in reading.row("hot:8080")[1:]] == ["80.0%", "60.0%", "50.0%"]
    assert [plain(cell) for cell in reading.row("idle:8080")[1:]] == ["10.0%", "30.0%", "40.0%"]


def test_a_dominated_combination_is_marked() -> None:
    inputs = skewed_inputs()
    first, *others = inputs.recommendation.combinations
    dominated = replace(first, dominated_by="AvgShedder with AvgShedder")
    page = inputs.recommending(combinations=(dominated, *others)).page()
    assert ">dominated</span>" in render_html(page)
    assert "Dominated by AvgShedder with AvgShedder" in render_markdown(page)


def test_a_balancer_that_does_not_come_to_rest_ends_with_nothing() -> None:
    def says(**given: Any) -> str:
        return plain(interference_sentence(replace(UNDONE, **given), 60))

    assert "and not settle by cycle 60, with the busiest broker at 50.0%." in says(ended="unfinished")
    assert "and oscillate, with the busiest broker at 50.0% in cycle 9." in says(ended="repeats", cycles=9)
    assert "and end with the busiest broker at 50.0%, or oscillate, depending on" in says(worst_ended="repeats")
    assert "at 50.0% (48.0% to 60.0%, depending on" in says(lowest_maximum_ratio=0.48, highest_maximum_ratio=0.6)


def test_cycles_in_which_bundles_are_only_split_show_that() -> None:
    page = skewed_inputs().page()
    acting = (CycleSeen(0, 0, 0.67, 0.1), CycleSeen(3, 0, 0.67, 0.1, splits=7))
    document = render_markdown(replace(page, next=whats_next(foresight(acting=acting))))
    assert "| 3 | 0 | 7 | 67.0% | 10.0% |" in document
