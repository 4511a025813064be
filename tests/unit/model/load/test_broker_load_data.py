"""The Extensible manager's smoothed record of a broker."""

from __future__ import annotations

import numpy as np
import pytest

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.load.broker_load_data import fresh_records, updated

SETTINGS = resolve_settings("4.0.8", {"loadBalancerHistoryResourcePercentage": "0.75"}).values
LIMIT = np.full((1, 5), 100.0)


def sample(cpu: float, throughput: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array([[cpu, 0, 0, 0, 0]]), LIMIT, np.array([[0, 0, throughput, 0]])


def test_a_record_without_samples_counts_as_full() -> None:
    records = fresh_records(2)
    assert records.weighted_max_ema.tolist() == [1.0, 1.0]
    assert records.msg_throughput_ema.tolist() == [0.0, 0.0]


def test_the_first_sample_is_taken_whole_and_later_ones_by_their_weight() -> None:
    first = updated(fresh_records(1), *sample(50, 4), SETTINGS, now_ms=1000)
    second = updated(first, *sample(100, 8), SETTINGS, now_ms=6000)
    assert (first.weighted_max_ema[0], first.msg_throughput_ema[0]) == (0.5, 4.0)
    assert (second.weighted_max_ema[0], second.msg_throughput_ema[0]) == pytest.approx((0.625, 5.0))
    assert second.updated_at_ms[0] == 6000
