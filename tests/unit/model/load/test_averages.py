"""Many equal samples at once are what Pulsar has after one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.load.averages import LONG_TERM_MAX_SAMPLES, SHORT_TERM_MAX_SAMPLES, folded
from unit.simulation.brute_force import Average


@given(
    st.floats(0, 1e9),
    st.integers(0, 12),
    st.floats(0, 1e9),
    st.integers(1, 40),
    st.sampled_from([SHORT_TERM_MAX_SAMPLES, LONG_TERM_MAX_SAMPLES]),
)
def test_any_number_of_samples(average: float, samples: int, sample: float, number: int, most: int) -> None:
    samples = min(samples, most)
    figures, counted = folded(
        np.full((1, 4), average), np.array([samples]), np.full((1, 4), sample), number, max_samples=most
    )
    one_at_a_time = Average(average, samples, most)
    for _ in range(number):
        one_at_a_time.add(sample)
    assert figures[0].tolist() == pytest.approx([one_at_a_time.value] * 4, rel=1e-9, abs=1e-6)
    assert counted.tolist() == [one_at_a_time.samples]


def test_the_first_sample_replaces_the_default() -> None:
    figures, counted = folded(
        np.full((1, 4), np.nan), np.array([0]), np.full((1, 4), 7.0), 1, max_samples=SHORT_TERM_MAX_SAMPLES
    )
    assert figures.tolist() == [[7.0] * 4]
    assert counted.tolist() == [1]


def test_bundles_fold_from_where_each_of_them_is() -> None:
    figures, counted = folded(
        np.array([[10.0] * 4, [10.0] * 4]), np.array([1, 10]), np.full((2, 4), 20.0), 1, SHORT_TERM_MAX_SAMPLES
    )
    assert figures[:, 0].tolist() == pytest.approx([15.0, 11.0])
    assert counted.tolist() == [2, 10]
