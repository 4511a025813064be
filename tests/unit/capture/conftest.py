"""A cluster whose brokers run the Extensible load manager."""

from __future__ import annotations

import pytest

from unit.capture.fake_cluster import FakeCluster
from unit.capture.fake_topics import EXTENSIBLE


@pytest.fixture
def extensible(cluster: FakeCluster) -> FakeCluster:
    for broker in (cluster.first, cluster.second):
        cluster.configure(broker, loadManagerClassName=EXTENSIBLE)
        broker.answers("/broker-stats/metrics", [])
    return cluster
