"""Moving averages, and when a report is published."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pulsar_advisor.model.averages import (
    DEFAULT_FIGURES,
    add_sample,
    broker_averages,
    needs_publishing,
    percent_change,
)
from pulsar_advisor.model.settings import resolve_settings

SETTINGS = resolve_settings("4.0.8").values


def test_the_first_sample_replaces_the_defaults() -> None:
    averages, samples = add_sample(np.array([DEFAULT_FIGURES]), np.array([0]), np.full((1, 4), 8.0), 10)
    assert averages.tolist() == [[8.0] * 4]
    assert samples.tolist() == [1]


def test_a_plain_mean_turns_into_an_exponential_one_at_the_maximum() -> None:
    averages, samples = np.zeros((1, 4)), np.array([0])
    seen = []
    for value in (90.0, 30.0, 60.0, 0.0):
        averages, samples = add_sample(averages, samples, np.full((1, 4), value), max_samples=3)
        seen.append(float(averages[0, 0]))
    assert seen == [90.0, 60.0, 60.0, 40.0]


def test_a_brokers_averages_count_defaults_for_bundles_without_any() -> None:
    total = broker_averages(np.array([[1.0] * 4, [9.0] * 4]), np.array([True, False]), np.array([50.0] * 4))
    assert total.tolist() == [51.0] * 4


@pytest.mark.parametrize(("old", "new", "change"), [(0, 0, 0), (0, 1, math.inf), (100, 90, 10), (100, 0, 100)])
def test_percent_change(old: float, new: float, change: float) -> None:
    assert percent_change(old, new) == change


@pytest.mark.parametrize(
    ("new", "age_ms", "publishes"),
    [
        ((110.0, 100.0, 10, 0.5), 0, False),
        ((111.0, 100.0, 10, 0.5), 0, True),
        ((100.0, 100.0, 10, 0.61), 0, True),
        ((100.0, 100.0, 10, 0.5), 15 * 60_000, False),
        ((100.0, 100.0, 10, 0.5), 15 * 60_000 + 1, True),
    ],
)
def test_a_report_is_published_on_a_change_above_the_threshold_or_when_it_is_old(
    new: tuple[float, float, int, float], age_ms: int, publishes: bool
) -> None:
    assert needs_publishing((100.0, 100.0, 10, 0.5), new, age_ms, SETTINGS) is publishes
