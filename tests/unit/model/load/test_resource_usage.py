"""Percentages in binary32 and their maximum."""

from __future__ import annotations

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import RESOURCES
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.resource_usage import (
    maximum,
    overload_usage,
    percent,
    weighted_maximum,
    weighted_maximum_with_heap,
)


def settings(release: str = "4.0.8", **weights: float) -> LoadBalancerSettings:
    runtime = {f"loadBalancer{name}ResourceWeight": str(weight) for name, weight in weights.items()}
    return resolve_settings(release, runtime=runtime).values


def broker(**percents: float) -> tuple[np.ndarray, np.ndarray]:
    usage = np.array([[percents.get(name, 0.0) for name in RESOURCES]])
    return usage, np.full_like(usage, 100.0)


@pytest.mark.parametrize(
    ("used", "result"), [(30, 30.000001907348633), (53, 52.999996185302734), (60, 60.000003814697266), (150, 150.0)]
)
def test_percentages_are_binary32_and_not_clamped(used: float, result: float) -> None:
    assert float(percent(np.array([float(used)]), np.array([100.0]))[0]) == result


@pytest.mark.parametrize("limit", [0.0, -1.0, np.nan])
def test_a_resource_without_a_limit_is_idle(limit: float) -> None:
    assert percent(np.array([80.0]), np.array([limit]))[0] == 0


def test_the_unweighted_maximum_leaves_the_heap_out() -> None:
    assert maximum(*broker(cpu=10, memory=99, directMemory=90))[0] == np.float32(0.9)


def test_the_weighted_maximum_ignores_the_heap_from_3_0_on() -> None:
    busy_heap = broker(cpu=40, memory=90)
    assert weighted_maximum(*busy_heap, settings("2.11.0"))[0] == pytest.approx(0.9)
    assert weighted_maximum(*busy_heap, settings("3.0.7"))[0] == pytest.approx(0.4)


def test_the_extensible_manager_counts_the_heap_if_it_has_a_weight() -> None:
    busy_heap = broker(cpu=40, memory=90)
    assert weighted_maximum_with_heap(*busy_heap, settings())[0] == pytest.approx(0.4)
    assert weighted_maximum_with_heap(*busy_heap, settings(Memory=0.5))[0] == pytest.approx(0.45)


def test_the_misspelt_weight_counts_while_the_correct_one_is_1() -> None:
    busy_network = broker(bandwidthIn=80)
    assert weighted_maximum(*busy_network, settings(BandwithIn=0.5))[0] == pytest.approx(0.4)
    assert weighted_maximum(*busy_network, settings(BandwithIn=0.5, BandwidthIn=0.25))[0] == pytest.approx(0.2)


def test_a_share_that_is_no_number_is_ignored() -> None:
    usage, limit = broker(cpu=np.nan, bandwidthOut=20)
    assert weighted_maximum(usage, limit, settings())[0] == pytest.approx(0.2)


def test_overload_goes_by_the_weighted_maximum_from_4_0_on() -> None:
    busy_cpu = broker(cpu=90)
    assert overload_usage(*busy_cpu, settings("3.3.6", CPU=0.5))[0] == pytest.approx(0.9)
    assert overload_usage(*busy_cpu, settings("4.0.8", CPU=0.5))[0] == pytest.approx(0.45)
