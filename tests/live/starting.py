"""How tests come by real brokers, and skip where this machine has none for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness.cluster import ClusterOptions, LiveCluster
from harness.errors import LiveClusterUnavailable

REQUIRE_LIVE = "PULSAR_ADVISOR_REQUIRE_LIVE"
"""Set to 1 where a missing artifact repository must fail the tests instead of skipping them."""

StartCluster = Callable[[ClusterOptions], LiveCluster]


@contextmanager
def unavailable_skips() -> Iterator[None]:
    """Skip the test where no cluster can be had, unless it is required."""
    try:
        yield
    except LiveClusterUnavailable as error:
        if os.environ.get(REQUIRE_LIVE) == "1":
            raise
        pytest.skip(str(error))


def with_cpu_skew(cluster: LiveCluster) -> LiveCluster:
    """The cluster, for tests that need brokers with unequal CPU."""
    if not cluster.has_cpu_skew:
        pytest.skip("this machine doesn't permit mount namespaces, so all brokers report the host's CPU")
    return cluster
