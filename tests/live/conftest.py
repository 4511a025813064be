"""Real brokers for tests: one shared cluster, the same under load, and a factory for every other kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.cluster import ClusterOptions, LiveCluster
from harness.load import running_load
from harness.scalable_load import SCALABLE_RELEASE
from harness.skew import wait_for_skew
from live.starting import StartCluster, unavailable_skips, with_cpu_skew
from pulsar_advisor.storage.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path / "root"), "live")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[LiveCluster]:
    """Three 4.0.8 brokers, Modular load manager, CPU sensor where possible; shared by the whole session.

    If a test of the session needs the skewed load, it runs from the start: the brokers take two minutes to show it.
    """
    with ExitStack() as running:
        started = _start(ClusterOptions(), running, request.session)
        if any("loaded_cluster" in getattr(test, "fixturenames", ()) for test in request.session.items):
            running.enter_context(running_load(started))
        yield started


@pytest.fixture(scope="session")
def loaded_cluster(cluster: LiveCluster) -> LiveCluster:
    """The shared cluster under the skewed load, its first broker hot (where CPU can differ)."""
    if cluster.has_cpu_skew:
        wait_for_skew(cluster.admin)
    return cluster


@pytest.fixture(scope="session")
def skewed_cluster(loaded_cluster: LiveCluster) -> LiveCluster:
    """The loaded cluster, for tests that need unequal CPU."""
    return with_cpu_skew(loaded_cluster)


@pytest.fixture
def start_cluster(request: pytest.FixtureRequest) -> Iterator[StartCluster]:
    """Start a cluster of any kind for one test."""
    with ExitStack() as running:
        yield lambda options: _start(options, running, request.session)


@pytest.fixture(scope="module")
def secured_cluster(request: pytest.FixtureRequest) -> Iterator[LiveCluster]:
    """Three brokers that want a token or a client certificate, and speak TLS beside plain text."""
    providers = ",".join(
        f"org.apache.pulsar.broker.authentication.AuthenticationProvider{way}" for way in ("Token", "Tls")
    )
    options = ClusterOptions(token_authentication=True, tls=True, settings={"authenticationProviders": providers})
    with ExitStack() as running:
        yield _start(options, running, request.session)


@pytest.fixture(scope="module")
def pulsar_5_cluster(request: pytest.FixtureRequest) -> Iterator[LiveCluster]:
    """Three brokers of the release whose client loads scalable topics."""
    with ExitStack() as running:
        yield _start(ClusterOptions(release=SCALABLE_RELEASE), running, request.session)


@pytest.fixture(scope="module", params=["modular", "extensible"])
def cluster_to_drill(request: pytest.FixtureRequest) -> Iterator[LiveCluster]:
    """Three brokers to make ill, of each load manager that sends bundles where a plan wants them."""
    with ExitStack() as running:
        yield _start(ClusterOptions(load_manager=request.param), running, request.session)


def _start(options: ClusterOptions, running: ExitStack, session: pytest.Session) -> LiveCluster:
    failed_before = session.testsfailed
    cluster = LiveCluster(options)
    with unavailable_skips():
        running.enter_context(cluster)

    def keep_logs_of_failures() -> None:
        cluster.keep_logs = session.testsfailed > failed_before

    running.callback(keep_logs_of_failures)
    return cluster
