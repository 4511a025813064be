"""The chart of broker usage."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from pulsar_advisor.reporting.brokers import Threshold
from pulsar_advisor.reporting.chart import _ticks, shared_suffix, tradeoff_chart, tradeoff_text, usage_chart
from pulsar_advisor.reporting.options import Options
from unit.reporting.skewed import hostile_inputs, skewed_inputs


@pytest.mark.parametrize(
    ("brokers", "suffix"),
    [
        (["b-1.pulsar.svc:8080", "b-2.pulsar.svc:8080"], ".pulsar.svc:8080"),
        (["b-1:8080", "b-2:8080"], ":8080"),
        (["10.0.1.7:8080", "10.0.2.7:8080"], ":8080"),
        (["localhost:8081", "localhost:8082"], ""),
        (["b-1.pulsar.svc:8080"], ""),
        (["x.pulsar:8080", "pulsar:8080"], ":8080"),
        ([], ""),
    ],
)
def test_brokers_are_shown_without_what_all_their_names_share(brokers: list[str], suffix: str) -> None:
    assert shared_suffix(brokers) == suffix


def test_the_drawing_contains_every_broker_threshold_and_figure() -> None:
    svg = usage_chart(skewed_inputs().page().brokers, 400, 200)
    words = {element.text for element in ElementTree.fromstring(svg).iter("text")}
    assert {"pulsar-broker-1", "91% → 50%", "51%", "overloaded", "mean + 15%"} <= words


def test_a_long_name_keeps_its_end_by_which_brokers_differ() -> None:
    table = skewed_inputs().page().brokers
    rows = (replace(row, id=f"prod-eu-west-pulsar-broker-{n}:8080") for n, row in enumerate(table.rows, 10))
    svg = usage_chart(replace(table, rows=tuple(rows)), 150, 96)
    words = {element.text for element in ElementTree.fromstring(svg).iter("text")}
    assert {"prod-eu-…oker-10", "prod-eu-…oker-11"} <= words


def test_hostile_names_leave_the_drawing_well_formed() -> None:
    root = ElementTree.fromstring(usage_chart(hostile_inputs().page().brokers, 400, 200))
    assert "script" not in {element.tag for element in root.iter()}


def skewed_options() -> Options:
    options = skewed_inputs().page().options
    assert options is not None
    return options


def test_plans_on_the_front_are_numbered_as_in_the_table() -> None:
    options = skewed_options()
    words = [element.text for element in ElementTree.fromstring(tradeoff_chart(options, 400)).iter("text")]
    assert {"topics and clients disturbed", *(one.label for one in options.tradeoffs if one.on_front)} <= {*words}
    assert "do nothing" not in words
    assert "Without a plan it is at 91.0%" in tradeoff_text(options)


def test_a_plan_that_makes_the_busiest_broker_busier_does_not_flatten_the_others() -> None:
    options = skewed_options()
    worse = replace(options.tradeoffs[-1], maximum_ratio=4.2, on_front=False)
    assert tradeoff_chart(replace(options, tradeoffs=(*options.tradeoffs, worse)), 400) == tradeoff_chart(options, 400)


def test_the_words_count_the_choices_that_the_chart_of_disruption_shows() -> None:
    options = skewed_options()
    worse = replace(options.tradeoffs[-1], maximum_ratio=4.2, on_front=False)
    words = tradeoff_text(replace(options, tradeoffs=(*options.tradeoffs, worse)))
    assert words.startswith("Chart of 3\N{NO-BREAK SPACE}choices ")
    assert words.endswith("every figure, also of 1 that would make it busier.")


def test_the_drawing_refers_to_nothing_outside() -> None:
    assert "http" not in usage_chart(skewed_inputs().page().brokers, 400, 200)


@pytest.mark.parametrize(
    ("thresholds", "gap", "ticks"),
    [
        ([0.85], 0.06, [0.0, 0.2, 0.4, 0.6, 0.85, 1.0]),
        ([0.85, 0.58], 0.06, [0.0, 0.2, 0.4, 0.58, 0.85, 1.0]),
        ([0.85], 0.24, [0.0, 0.4, 0.85]),
    ],
)
def test_the_axis_has_a_tick_at_each_threshold_and_none_too_close_to_another(
    thresholds: list[float], gap: float, ticks: list[float]
) -> None:
    assert _ticks(thresholds, 1.0, gap) == ticks


def test_what_is_said_of_doing_nothing_holds_though_a_plan_disturbs_nothing() -> None:
    options = skewed_options()
    nothing = next(one for one in options.tradeoffs if one.name == "do nothing")
    free = replace(nothing, name="A with B", maximum_ratio=0.4)
    chosen = replace(options, tradeoffs=(free, replace(nothing, on_front=False)))
    assert "Without a plan it is at 91.0%. A with B reaches the lowest, 40.0%" in tradeoff_text(chosen)
    alone = replace(options, tradeoffs=(nothing,))
    assert "Do nothing reaches the lowest, 91.0%" in tradeoff_text(alone)


def test_a_threshold_above_all_usage_is_within_the_drawing() -> None:
    table = skewed_inputs().page().brokers
    svg = ElementTree.fromstring(usage_chart(replace(table, thresholds=(Threshold("mean + 15%", 1.1),)), 400, 200))
    (label,) = [element for element in svg.iter("text") if element.text == "mean + 15%"]
    assert "translate(400," in label.attrib["transform"]
