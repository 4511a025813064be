"""What goes with a bundle by the proportional model."""

from __future__ import annotations

import numpy as np
import pytest

from pulsar_advisor.model.load.proportional import usage_of

USAGE = [80.0, 5.0, 7.0, 40.0, 20.0]
"""CPU, heap, direct memory, bandwidth in, bandwidth out."""


def moved(bundle: list[float], broker: list[float], usage: list[float] = USAGE) -> list[float]:
    (row,) = usage_of(np.array([bundle]), np.array([broker]), np.array([usage]))
    return row.tolist()


def test_cpu_goes_by_messages_bandwidth_by_bytes_of_its_direction_and_memory_stays() -> None:
    assert moved([10, 15, 100, 300], [40, 60, 1000, 400]) == [20.0, 0.0, 0.0, 4.0, 15.0]


def test_a_bundle_takes_at_most_all() -> None:
    assert moved([100, 0, 5000, 0], [10, 0, 1000, 0]) == [80.0, 0.0, 0.0, 40.0, 0.0]


@pytest.mark.parametrize("figure", [0.0, -1.0, float("nan"), float("inf")])
def test_a_figure_that_is_no_rate_takes_nothing(figure: float) -> None:
    assert moved([figure, 0, figure, figure], [100, 0, 100, 100]) == [0.0] * 5


@pytest.mark.parametrize("usage", [float("nan"), float("inf"), -1.0, -241_125.7])
def test_of_a_usage_that_is_negative_or_no_number_nothing_goes(usage: float) -> None:
    assert moved([10, 0, 10, 10], [100, 0, 100, 100], [usage] * 5) == [0.0] * 5


def test_a_broker_without_traffic_gives_nothing() -> None:
    assert moved([10, 10, 10, 10], [0, 0, 0, 0]) == [0.0] * 5
