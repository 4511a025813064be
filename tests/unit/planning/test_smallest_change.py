"""The smallest change is found by asking again, whatever the strategy's formula is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.settings import resolve_settings
from pulsar_advisor.planning.smallest_change import Change, smallest_changes

THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"
WEIGHT = "loadBalancerCPUResourceWeight"
LOWER_BOUNDARY = "lowerBoundarySheddingEnabled"
EXCLUDED = "loadBalancerSheddingExcludedNamespaces"


def change_of(key: str, differs: Callable[[str], bool], namespaces: tuple[str, ...] = (), **own: str) -> Change | None:
    settings = resolve_settings("4.0.8", what_if=own).values
    found = smallest_changes(settings, [key], namespaces, lambda _, text: differs(text))
    return found[0] if found else None


@pytest.mark.parametrize("limit", [0, 3, 7, 9])
def test_the_limit_of_a_whole_number_is_exact_below_it(limit: int) -> None:
    found = change_of(THRESHOLD, lambda text: int(text) <= limit)
    assert found == Change(THRESHOLD, "10", str(limit), (10 - limit) / 10)


@given(st.integers(11, 100))
def test_and_above_it(limit: int) -> None:
    found = change_of(THRESHOLD, lambda text: int(text) >= limit)
    assert found is not None and found.after == str(limit)


@given(st.floats(1.02, 90.0))
def test_the_limit_of_a_fraction_is_close_and_has_few_digits(limit: float) -> None:
    found = change_of(WEIGHT, lambda text: float(text) >= limit)
    assert found is not None
    assert limit <= float(found.after) <= limit * 1.02
    assert len(found.after) <= 6


def test_of_two_directions_the_nearer_one_is_taken() -> None:
    found = change_of(THRESHOLD, lambda text: int(text) <= 2 or int(text) >= 12)
    assert found is not None and found.after == "12"


def test_a_flag_is_turned_and_a_namespace_is_added_or_left_out() -> None:
    flag = change_of(LOWER_BOUNDARY, lambda text: text == "true")
    assert flag == Change(LOWER_BOUNDARY, "false", "true", 1.0)
    added = change_of(EXCLUDED, lambda text: "t/n" in text, ("t/n",))
    assert added == Change(EXCLUDED, "", "t/n", 1.0)
    left_out = change_of(EXCLUDED, lambda text: "t/n" not in text, ("t/n",), **{EXCLUDED: "t/m,t/n"})
    assert left_out == Change(EXCLUDED, "t/m,t/n", "t/m", 1.0)


def test_what_nothing_changes_has_no_change() -> None:
    assert change_of(THRESHOLD, lambda _: False) is None
    assert change_of("loadBalancerLoadSheddingStrategy", lambda _: True) is None


def test_the_smallest_comes_first() -> None:
    settings = resolve_settings("4.0.8").values
    found = smallest_changes(settings, [LOWER_BOUNDARY, THRESHOLD], (), lambda key, text: text in ("true", "7"))
    assert [change.key for change in found] == [LOWER_BOUNDARY]
    found = smallest_changes(
        settings, [LOWER_BOUNDARY, THRESHOLD], (), lambda key, text: text == "true" or (key == THRESHOLD and text < "8")
    )
    assert [change.key for change in found] == [THRESHOLD, LOWER_BOUNDARY]
