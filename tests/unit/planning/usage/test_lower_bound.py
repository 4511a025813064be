"""No moves bring the busiest broker below the bound, and where bundles are small it is almost reached."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import CPU, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.load.base_load import BaseLoad, base_load
from pulsar_advisor.planning.usage.lower_bound import lowest_usage
from pulsar_advisor.simulation.cluster import SimulatedCluster
from states import HALVES, BrokerRow, BundleRow, cluster_state
from unit.properties import examples

SETTINGS = resolve_settings("4.0.8").values


def cluster(rates: dict[str, list[float]], limits: dict[str, float] | None = None) -> ClusterState:
    """Brokers whose CPU is one percent point for each message/s of their bundles."""
    return cluster_state(
        [
            BrokerRow(f"{name}:8080", cpu=(sum(each), (limits or {}).get(name, 100.0)), traffic=(sum(each), 0, 0, 0))
            for name, each in rates.items()
        ],
        [
            BundleRow(f"t/{name}{number}", HALVES[0], f"{name}:8080", (rate, 0, 0, 0), topics=1)
            for name, each in rates.items()
            for number, rate in enumerate(each)
        ],
    )


def without_base(state: ClusterState) -> BaseLoad:
    zero = np.zeros(len(state.brokers))
    return BaseLoad(zero, zero, zero, ("default",) * len(state.brokers))


def bound(state: ClusterState) -> float:
    found = lowest_usage(state, SETTINGS, without_base(state).likely)
    assert found is not None
    return found.by_bundles


def test_divisible_load_can_be_spread_evenly() -> None:
    assert bound(cluster({"a": [10.0] * 8, "b": [], "c": [10.0]})) == pytest.approx(0.3)


def test_the_largest_bundle_must_be_somewhere() -> None:
    assert bound(cluster({"a": [70.0, 10.0], "b": []})) == pytest.approx(0.7)


def test_a_larger_broker_takes_more() -> None:
    assert bound(cluster({"a": [10.0] * 9, "b": []}, {"a": 100.0, "b": 200.0})) == pytest.approx(0.3)


def test_what_no_bundle_takes_along_stays() -> None:
    state = cluster({"a": [10.0], "b": []})
    state.brokers.usage[0, 0] = 90.0
    state.brokers.traffic[0, 0] = 90.0
    assert bound(state) == pytest.approx(0.8)


def test_without_a_broker_there_is_no_bound() -> None:
    state = cluster({"a": [10.0]})
    state.brokers.available[:] = False
    assert lowest_usage(state, SETTINGS, base_load(state).likely) is None


rates = st.lists(st.integers(1, 40).map(float), max_size=2)


@examples(30)
@given(st.tuples(rates, rates, rates))
def test_no_assignment_of_whole_bundles_is_below_it(each: tuple[list[float], ...]) -> None:
    state = cluster(dict(zip("abc", each, strict=True)))
    base = base_load(state)
    lowest = lowest_usage(state, SETTINGS, base.likely)
    assert lowest is not None
    bundles, cpu = range(len(state.bundles)), SimulatedCluster.of(state, base.likely)
    for owners in product(range(3), repeat=len(bundles)):
        assert cpu.moved(list(bundles), list(owners)).broker_usage[:, CPU].max() / 100 >= lowest.by_bundles - 1e-6
