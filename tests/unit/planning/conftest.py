"""A small cluster with one hot broker (90 % of its CPU; the others 10 and 20 %), whose load is in three bundles."""

import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from states import WHOLE, BrokerRow, BundleRow, cluster_state

MIB = 1024.0 * 1024.0

TOPICS = tuple(f"persistent://t/hot/topic-{number}" for number in range(8))


@pytest.fixture
def state() -> ClusterState:
    return cluster_state(
        [
            BrokerRow("a:8080", cpu=(360.0, 400.0), traffic=(900.0, 900.0, 40 * MIB, 40 * MIB), topics=6),
            BrokerRow("b:8080", cpu=(40.0, 400.0), traffic=(100.0, 100.0, MIB, MIB), topics=1),
            BrokerRow("c:8080", cpu=(80.0, 400.0), traffic=(200.0, 200.0, 2 * MIB, 2 * MIB), topics=1),
        ],
        [
            BundleRow("t/hot", "0x00000000_0x40000000", "a:8080", (500.0, 500.0, 25 * MIB, 25 * MIB), topics=3),
            BundleRow("t/hot", "0x40000000_0x80000000", "a:8080", (300.0, 300.0, 10 * MIB, 10 * MIB), topics=2),
            BundleRow("t/hot", "0x80000000_0xc0000000", "a:8080", (100.0, 100.0, 5 * MIB, 5 * MIB), topics=1),
            BundleRow("t/hot", "0xc0000000_0xffffffff", "b:8080", (100.0, 100.0, MIB, MIB), topics=1),
            BundleRow("t/idle", WHOLE, "c:8080", (200.0, 200.0, 2 * MIB, 2 * MIB), topics=1),
            BundleRow("t/unowned", WHOLE, None),
        ],
        topics=TOPICS,
    )


@pytest.fixture
def settings() -> ResolvedSettings:
    return resolve_settings("4.0.8", dynamic={"loadBalancerNamespaceBundleMaxMsgRate": "900"})
