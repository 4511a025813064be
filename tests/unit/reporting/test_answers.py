"""Outcomes grouped for people: brokers and bundles by reason, the heaviest examples, the doubtful decisions."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

import documents
from pulsar_advisor.reporting.answers import (
    BUNDLE_EXAMPLES_SHOWN,
    Answers,
    group_answers,
)
from pulsar_advisor.tables.outcomes import SCHEMA
from unit.reporting.skewed import outcome

BUNDLES = [f"a/b/0x{number:08x}_0x{number + 1:08x}" for number in range(100)]


def grouped(
    rows: list[dict[str, Any]], load: dict[str, float] | None = None, decisive: tuple[str, ...] = ()
) -> Answers:
    return group_answers(pa.Table.from_pylist(rows, SCHEMA), load or {}, decisive, ())


def test_bundles_of_one_reason_are_counted_and_the_heaviest_are_shown() -> None:
    load = {bundle: float(number) for number, bundle in enumerate(BUNDLES)}
    (strategy,) = grouped([outcome(bundle, "TOO_SMALL", "small") for bundle in BUNDLES], load).strategies
    (group,) = strategy.bundles
    assert group.number == 100
    assert [example.object for example in group.examples] == BUNDLES[: -1 - BUNDLE_EXAMPLES_SHOWN : -1]


def test_equal_loads_are_shown_by_name_whatever_the_order_of_input() -> None:
    rows = [outcome(bundle, "TOO_SMALL", "small") for bundle in BUNDLES]
    expected = grouped(rows)
    for seed in range(5):
        assert grouped(random.Random(seed).sample(rows, len(rows))) == expected


def test_what_was_chosen_comes_first_then_the_commonest_reason() -> None:
    rows = [
        outcome("one", "RARE", ""),
        outcome("two", "COMMON", ""),
        outcome("three", "COMMON", ""),
        outcome("four", "TAKEN", "", chosen=True),
    ]
    (strategy,) = grouped(rows).strategies
    assert [group.code for group in strategy.brokers] == ["TAKEN", "COMMON", "RARE"]
    assert strategy.bundles == ()


def test_decisions_settled_by_the_last_digit_are_listed_apart() -> None:
    rows = [outcome("one", "BELOW", "0.1 is below 0.1", near_tie=True), outcome("two", "BELOW", "0.1 is below 0.2")]
    (strategy,) = grouped(rows).strategies
    assert strategy.near_ties_total == 1
    assert [example.object for example in strategy.near_ties] == ["one"]


def test_the_strategies_behind_the_verdict_come_first_in_their_order() -> None:
    rows = [
        outcome("one", "C", "", strategy="A"),
        outcome("one", "C", "", strategy="Placement", role="placement", shedder="Shedder", placement="Placement"),
        outcome("one", "C", "", strategy="Shedder"),
    ]
    answers = grouped(rows, decisive=("Shedder", "Placement"))
    assert [(row.strategy, row.decisive) for row in answers.strategies] == [
        ("Shedder", True),
        ("Placement", True),
        ("A", False),
    ]


def test_answers_of_another_placement_are_not_those_behind_the_verdict() -> None:
    rows = [
        outcome("one", "C", "", strategy=name, role="placement", shedder="Shedder", placement=name)
        for name in ("Other", "Placement")
    ]
    answers = grouped(rows, decisive=("Shedder", "Placement"))
    assert [row.strategy for row in answers.strategies] == ["Placement"]


def test_a_class_in_two_roles_is_shown_twice() -> None:
    rows = [
        outcome("one", "C", "", strategy="AvgShedder"),
        outcome("one", "D", "", strategy="AvgShedder", role="placement", shedder="AvgShedder", placement="AvgShedder"),
    ]
    answers = grouped(rows, decisive=("AvgShedder", "AvgShedder"))
    assert [(row.strategy, row.role) for row in answers.strategies] == [
        ("AvgShedder", "shedder"),
        ("AvgShedder", "placement"),
    ]


def test_a_shedder_that_does_nothing_is_named_once_with_all_its_placements() -> None:
    quiet = [documents.combination("S", name, steps=0, why_nothing="all below 85 %") for name in ("P", "Q")]
    answers = group_answers(SCHEMA.empty_table(), {}, (), [*quiet, documents.combination("T", "P", steps=2)])
    (silence,) = answers.silences
    assert (silence.shedder, silence.placements, silence.why) == ("S", ("P", "Q"), "all below 85 %")
