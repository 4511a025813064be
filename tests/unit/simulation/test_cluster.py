"""Bundles take their load with them, and nothing is lost on the way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.simulation.cluster import BUNDLES, TOPICS, SimulatedCluster
from states import BrokerRow, BundleRow, cluster_state
from unit.any_cluster import Rows, coherent_rows

TWO_BROKERS = cluster_state(
    [
        BrokerRow("a:8080", cpu=(80.0, 100.0), bandwidth_in=(40.0, 100.0), traffic=(10.0, 10.0, 8.0, 8.0), topics=5),
        BrokerRow("b:8080", cpu=(20.0, 200.0), traffic=(1.0, 1.0, 1.0, 1.0), topics=1),
    ],
    [
        BundleRow("t/n", "0x00000000_0x80000000", "a:8080", (5.0, 5.0, 2.0, 2.0), topics=3),
        BundleRow("t/n", "0x80000000_0xffffffff", "b:8080", (1.0, 1.0, 1.0, 1.0), topics=1),
        BundleRow("t/silent", "0x00000000_0xffffffff", "a:8080"),
    ],
)


def test_at_first_every_broker_has_what_it_reported() -> None:
    cluster = SimulatedCluster.of(TWO_BROKERS)
    assert cluster.broker_usage == pytest.approx(TWO_BROKERS.brokers.usage)
    assert cluster.broker_traffic == pytest.approx(TWO_BROKERS.brokers.traffic)
    assert cluster.broker_counts[:, BUNDLES].tolist() == [2, 1]


def test_a_bundle_takes_half_of_its_brokers_messages_and_a_quarter_of_its_bytes_along() -> None:
    after = SimulatedCluster.of(TWO_BROKERS).moved([0], [1])
    cpu, _, _, bandwidth_in, _ = after.broker_usage.T
    assert cpu.tolist() == [40.0, 60.0]
    assert bandwidth_in.tolist() == [30.0, 10.0]
    assert after.broker_counts[:, TOPICS].tolist() == [2, 4]


def test_there_and_back_is_where_it_was() -> None:
    before = SimulatedCluster.of(TWO_BROKERS)
    after = before.moved([0], [1]).moved([0], [0])
    assert np.array_equal(after.broker_usage, before.broker_usage)


def test_twice_the_load_is_twice_the_bundles_and_not_what_the_broker_has_without_them() -> None:
    cluster = SimulatedCluster.of(TWO_BROKERS).under(2.0)
    assert cluster.broker_usage[:, 0].tolist() == [120.0, 40.0]
    assert cluster.broker_counts[:, BUNDLES].tolist() == [2, 1]


@given(coherent_rows(), st.data())
def test_moves_conserve_traffic_usage_and_counts(rows: Rows, data: st.DataObject) -> None:
    state = cluster_state(*rows)
    before = SimulatedCluster.of(state)
    bundles = data.draw(st.lists(st.integers(0, len(state.bundles) - 1), unique=True)) if len(state.bundles) else []
    owned = [bundle for bundle in bundles if before.owner[bundle] >= 0]
    to = [data.draw(st.integers(0, len(state.brokers) - 1)) for _ in owned]
    after = before.moved(owned, to)
    for figures in ("broker_traffic", "broker_usage", "broker_counts"):
        total_before, total_after = (getattr(one, figures).sum(axis=0) for one in (before, after))
        assert total_after == pytest.approx(total_before, rel=1e-9, abs=1e-6)


def test_the_base_of_a_broker_stays_where_it_is() -> None:
    after = SimulatedCluster.of(TWO_BROKERS, np.array([20.0, 5.0])).moved([0], [1])
    assert after.broker_usage[:, 0].tolist() == [50.0, 50.0]
