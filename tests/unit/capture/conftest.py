"""A cluster whose brokers run the Extensible load manager."""

from __future__ import annotations

import pytest

from unit.capture.fake_cluster import FakeCluster
from unit.capture.fake_topics import EXTENSIBLE


@pytest.fixture
def extensible(cluster: FakeCluster) -> FakeCluster:
    cluster.configure_all(loadManagerClassName=EXTENSIBLE)
    cluster.answers("/broker-stats/metrics", [])
    return cluster
