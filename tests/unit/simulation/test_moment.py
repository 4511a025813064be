"""A comparison that is left out changes nothing: reports are as if brokers had made each."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.simulation.leader import Unloads
from pulsar_advisor.simulation.measuring import Measuring
from pulsar_advisor.simulation.moment import Moment
from pulsar_advisor.simulation.publishing import Publishing
from pulsar_advisor.simulation.reports import Reports
from unit.simulation.clusters import cluster, settings

CYCLES = 25


def reports_of(load_manager: LoadManagerKind, what_if: Mapping[str, str], seed: int) -> list[Reports]:
    """The reports at each cycle of a cluster of four brokers in which somebody moves a bundle now and then."""
    state = cluster({"a": [20.0, 9.0, 1.0], "b": [30.0, 0.4], "c": [5.0], "d": []}, idle=3.0, load_manager=load_manager)
    values, draw = settings(**what_if), random.Random(seed)
    intervals = Intervals.of(values)
    now = Moment.of(state, np.zeros(len(state.brokers)), values, intervals, seed)
    found = []
    for _ in range(CYCLES):
        if draw.random() < 0.3:
            bundle, destination = draw.randrange(len(state.bundles)), draw.randrange(len(state.brokers))
            now = now.moved(Unloads(np.array([bundle], np.int32), np.array([destination], np.int32)))
        now = now.advanced(values, intervals)
        found.append(now.reports)
    return found


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("load_manager", ["modular", "extensible", "simple"])
@pytest.mark.parametrize(
    "what_if",
    [
        {},
        {"loadBalancerReportUpdateMinIntervalMillis": "1000", "statsUpdateFrequencyInSecs": "5"},
        {
            "loadBalancerReportUpdateMinIntervalMillis": "7000",
            "loadBalancerReportUpdateMaxIntervalMinutes": "2",
            "loadBalancerReportUpdateThresholdPercentage": "40",
            "loadBalancerHostUsageCheckIntervalMinutes": "3",
            "loadBalancerResourceQuotaUpdateIntervalMinutes": "4",
        },
    ],
    ids=["defaults", "hasty", "slow"],
)
def test_reports_are_as_if_every_comparison_had_been_made(
    load_manager: LoadManagerKind, what_if: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [reports_of(load_manager, what_if, seed) for seed in range(3)]
    monkeypatch.setattr(Measuring, "_news_ms", lambda _: 0)
    monkeypatch.setattr(Publishing, "_due_ms", lambda _: 0)
    for seed, cycles in enumerate(found):
        for made, expected in zip(cycles, reports_of(load_manager, what_if, seed), strict=True):
            np.testing.assert_equal(asdict(made), asdict(expected))
