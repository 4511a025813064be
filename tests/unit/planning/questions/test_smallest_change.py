"""The smallest change is found by asking again, whatever the strategy's formula is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.setting_texts import what_if_value
from pulsar_advisor.model.configuration.settings import FIELD_OF_KEY
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS
from pulsar_advisor.model.strategy.memory import MOST_CYCLES
from pulsar_advisor.planning.questions.smallest_change import Change, sensible_range, smallest_changes
from pulsar_advisor.planning.requests.what_if import keys_that_count

THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"
MINIMUM = "loadBalancerBundleUnloadMinThroughputThreshold"
LOWER_BOUNDARY = "lowerBoundarySheddingEnabled"
EXCLUDED = "loadBalancerSheddingExcludedNamespaces"


def change_of(key: str, differs: Callable[[str], bool], namespaces: tuple[str, ...] = (), **own: str) -> Change | None:
    settings = resolve_settings("4.0.8", what_if=own).values
    found = smallest_changes(settings, [key], namespaces, lambda _, text: differs(text))
    return found[0] if found else None


@pytest.mark.parametrize("limit", [1, 3, 7, 9])
def test_the_limit_of_a_whole_number_is_exact_below_it(limit: int) -> None:
    found = change_of(THRESHOLD, lambda text: int(text) <= limit)
    assert found == Change(THRESHOLD, "10", str(limit), (10 - limit) / 10)


@given(st.integers(11, 100))
def test_the_limit_of_a_whole_number_is_exact_above_it(limit: int) -> None:
    found = change_of(THRESHOLD, lambda text: int(text) >= limit)
    assert found is not None and found.after == str(limit)


@given(st.floats(10.2, 1e6))
def test_the_limit_of_a_fraction_is_close_and_has_few_digits(limit: float) -> None:
    found = change_of(MINIMUM, lambda text: float(text) >= limit)
    assert found is not None
    assert limit <= float(found.after) <= limit * 1.02
    assert len(found.after.replace("0", "")) <= 6


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


def anything(_: str) -> bool:
    return True


@pytest.mark.parametrize("key", sorted(keys_that_count()))
@pytest.mark.parametrize("release", ["2.11.0", "4.0.8", "5.0.0"])
def test_only_values_worth_setting_are_found(key: str, release: str) -> None:
    """Whatever would make a difference: no weight above 1, no limit of none, no grace period shorter than a cycle."""
    tried: list[str] = []
    own = resolve_settings(release).values
    smallest_changes(own, [key], ("t/n",), lambda _, text: bool(tried.append(text)))
    value = getattr(own, FIELD_OF_KEY[key])
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    low, high = sensible_range(key, own)
    assert all(low <= float(text) <= high for text in tried)
    assert all(what_if_value(key, text) is not None for text in tried)


@pytest.mark.parametrize("key", WEIGHT_KEYS)
def test_no_weight_above_one_is_found(key: str) -> None:
    found = change_of(key, anything)
    assert found is None or float(found.after) < 1
    assert change_of(key, lambda text: float(text) > 1) is None


def test_memory_is_given_no_weight() -> None:
    key = "loadBalancerDirectMemoryResourceWeight"
    assert change_of(key, anything) is None
    taken_away = change_of(key, anything, **{key: "0.5"})
    assert taken_away is not None and float(taken_away.after) < 0.5


def test_none_and_no_number_are_not_found() -> None:
    key = "maxUnloadBundleNumPerShedding"
    found = change_of(key, lambda text: int(text) <= 4)
    assert found == Change(key, "-1", "1", 1.0)


@pytest.mark.parametrize(
    ("key", "acts_in_cycle"),
    [
        ("loadBalancerSheddingConditionHitCountThreshold", lambda hits: hits + 1),
        ("loadBalancerAvgShedderHitCountLowThreshold", lambda hits: hits),
    ],
)
def test_no_count_is_found_with_which_it_would_only_act_later(key: str, acts_in_cycle: Callable[[int], int]) -> None:
    def stops(text: str) -> bool:
        return acts_in_cycle(int(text)) > MOST_CYCLES

    assert change_of(key, stops) is None
    assert change_of(key, lambda text: not stops(text)) is not None


def test_the_other_settings_limit_a_value() -> None:
    grace = "loadBalancerSheddingGracePeriodMinutes"
    own = {"loadBalancerSheddingIntervalMinutes": "7"}
    assert change_of(grace, lambda text: int(text) <= 7, **own) is None
    found = change_of(grace, lambda text: int(text) <= 8, **own)
    assert found is not None and found.after == "8"
    assert change_of("loadBalancerAvgShedderLowThreshold", lambda text: int(text) >= 40) is None


def test_the_smallest_comes_first() -> None:
    settings = resolve_settings("4.0.8").values
    found = smallest_changes(settings, [LOWER_BOUNDARY, THRESHOLD], (), lambda key, text: text in ("true", "7"))
    assert [change.key for change in found] == [LOWER_BOUNDARY]
    found = smallest_changes(
        settings, [LOWER_BOUNDARY, THRESHOLD], (), lambda key, text: text == "true" or (key == THRESHOLD and text < "8")
    )
    assert [change.key for change in found] == [THRESHOLD, LOWER_BOUNDARY]
