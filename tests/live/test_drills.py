"""Drills: it is 3 a.m., a cluster is ill, and the first screen is all that the operator sees.

Each makes real brokers ill in one way, under a load that lasts. What the screen must say, and what it mustn't, was
written before anybody looked.
"""

from __future__ import annotations

import io
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.load import running_load
from harness.shell import plain_connection
from harness.skew import wait_until_settled
from harness.workload import hot_topic_workload
from live.plans import divide, ranges_of
from live.starting import with_cpu_skew
from pulsar_advisor.cli import exit_code

pytestmark = [pytest.mark.live, pytest.mark.slow]

REGISTERED_S = 90
"""ZooKeeper forgets a broker after 30 s without it."""
BETWEEN_UNLOADS_S = 2.0
UNLOADS = 12
BURNT_CORES = 3.0
NOWHERE = "drills/nowhere"


@dataclass(frozen=True)
class Screen:
    """What `run` prints, without line breaks inside sentences."""

    text: str

    @property
    def headline(self) -> str:
        return self.text.splitlines()[0]

    def labelled(self, label: str) -> list[str]:
        return [line for line in self.text.splitlines() if line.startswith(label)]

    @property
    def first(self) -> str:
        """The headline and the first finding."""
        return "\n".join((self.headline, *self.labelled("Finding")[:1]))

    @property
    def advises(self) -> str:
        """The headline and the options."""
        return "\n".join((self.headline, *self.labelled("Option")))


@dataclass(frozen=True)
class Ward:
    """A cluster under a gentle load, and the operator's folder, in which there is a snapshot of it in health."""

    cluster: LiveCluster
    root: Path

    def look(self) -> Screen:
        """What the operator types, in this process, where Spark is warm."""
        place = ("--root", str(self.root), "--cluster", "live", "--master", "local[2]")
        wishes = ("--shedder", "all", "--placement", "all", "--splits")
        reach = plain_connection(self.cluster)
        if self.cluster.options.load_manager == "extensible":
            reach = (*reach, "--service-url", self.cluster.service_url)
        with mock.patch.dict(os.environ, COLUMNS="9999"), redirect_stdout(io.StringIO()) as said:
            code = exit_code(["run", *place, *reach, *wishes])
        screen = Screen(said.getvalue())
        print(f"\n{screen.text}", flush=True)
        assert code == 0
        return screen


@pytest.fixture(scope="module")
def healthy(cluster_to_drill: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ward, Screen]]:
    with running_load(cluster_to_drill, "gentle"):
        ward = Ward(cluster_to_drill, tmp_path_factory.mktemp("drills"))
        yield ward, ward.look()


@pytest.fixture
def ward(healthy: tuple[Ward, Screen]) -> Ward:
    return healthy[0]


def only(ward: Ward, manager: str) -> None:
    if ward.cluster.options.load_manager != manager:
        pytest.skip(f"the same under the {manager} load manager, where it is tried")


def wait(until: Callable[[], bool], limit_s: float = REGISTERED_S) -> None:
    deadline = time.monotonic() + limit_s
    while not until():
        assert time.monotonic() < deadline, "not within the time limit"
        time.sleep(0.5)


def registered(cluster: LiveCluster) -> list[str]:
    brokers: list[str] = cluster.living_admin.read(f"/brokers/{CLUSTER_NAME}")
    return brokers


def test_of_a_cluster_in_health_nothing_is_said_to_ail(healthy: tuple[Ward, Screen]) -> None:
    _, screen = healthy
    assert screen.headline.startswith(("Do nothing: ", "Unload "))
    for alarm in ("registered", "Isolation policies", "were unloaded", "should be split", "something else"):
        assert alarm not in screen.text.lower()


def test_namespaces_without_a_broker_by_their_isolation_policy_are_named_first(ward: Ward) -> None:
    admin = ward.cluster.admin
    divide(ward.cluster, NOWHERE, 2)
    policy = {
        "namespaces": [NOWHERE],
        "primary": ["retired-.*"],
        "secondary": [],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": "1", "usage_threshold": "100"},
        },
    }
    path = f"/clusters/{CLUSTER_NAME}/namespaceIsolationPolicies/nobody"
    admin.write("POST", path, body=policy)
    try:
        for text in ranges_of(ward.cluster, NOWHERE):
            admin.write("PUT", f"/namespaces/{NOWHERE}/{text}/unload")
        screen = ward.look()
    finally:
        admin.write("DELETE", path)
    assert NOWHERE in screen.headline
    assert "on no registered broker" in screen.headline
    assert "Do nothing" not in screen.headline


@contextmanager
def unloading(cluster: LiveCluster) -> Iterator[threading.Event]:
    """Unload the load's bundles in turn, one every two seconds, as a script gone wild; set after `UNLOADS` of them."""
    bundles = sorted(bundle for bundle in cluster.admin.owners(CLUSTER_NAME) if bundle.startswith(("ret", "tel")))
    stop, many = threading.Event(), threading.Event()

    def unload() -> None:
        for number, bundle in enumerate(itertools.cycle(bundles), 1):
            if stop.wait(BETWEEN_UNLOADS_S):
                return
            cluster.admin.call("PUT", f"/admin/v2/namespaces/{bundle}/unload")
            if number == UNLOADS:
                many.set()

    script = threading.Thread(target=unload, name="unloading", daemon=True)
    script.start()
    try:
        yield many
    finally:
        stop.set()
        script.join()


def test_that_something_else_moves_bundles_is_said_first(ward: Ward) -> None:
    ward.look()
    with unloading(ward.cluster) as many:
        assert many.wait(REGISTERED_S)
        screen = ward.look()
    assert "were unloaded" in screen.headline
    assert "not by Pulsar's own balancer" in screen.headline
    assert screen.headline.index("before you apply a plan") < 400
    assert "Do nothing" not in screen.headline


def test_a_broker_that_was_killed_is_named_first_until_it_is_back(ward: Ward) -> None:
    cluster = ward.cluster
    victim = cluster.brokers[1]
    cluster.kill_broker(victim)
    try:
        just_now = ward.look()
        wait(lambda: victim.broker_id not in registered(cluster))
        later, much_later = ward.look(), ward.look()
    finally:
        cluster.restart_broker(victim, killed=True)
    back = ward.look()
    for screen in (just_now, later, much_later):
        assert victim.broker_id in screen.headline[:200]
        assert "Do nothing" not in screen.headline
        assert f"on {victim.broker_id}" not in screen.advises
    assert "no longer" in much_later.headline
    assert "no longer" not in back.text
    assert "without figures" not in back.text


def test_a_broker_that_hangs_is_named_first(ward: Ward) -> None:
    only(ward, "modular")
    victim = ward.cluster.brokers[2]
    os.kill(victim.process.pid, signal.SIGSTOP)
    try:
        screen = ward.look()
    finally:
        os.kill(victim.process.pid, signal.SIGCONT)
    # It must not be merely left out.
    assert victim.broker_id in screen.headline[:200]
    assert "Do nothing" not in screen.headline
    wait(lambda: victim.broker_id in registered(ward.cluster))


def test_cpu_that_another_process_burns_is_told_from_load(ward: Ward) -> None:
    only(ward, "modular")
    cluster = with_cpu_skew(ward.cluster)
    victim = cluster.brokers[2]
    cluster.burn_cpu(victim, BURNT_CORES)
    try:
        wait_until_settled(cluster.admin, cluster.machines, margin_percent=30)
        screen = ward.look()
    finally:
        cluster.burn_cpu(victim, 0)
    assert victim.broker_id in screen.first
    assert "something else on its machine uses CPU" in screen.first
    assert "Split" not in screen.advises


def test_one_topic_with_most_of_the_traffic_is_named_and_its_bundle_not_split(ward: Ward) -> None:
    cluster = with_cpu_skew(ward.cluster)
    hot = hot_topic_workload()
    topic, (bundle,) = hot.topics[0].name, hot.brokers
    with running_load(cluster, "hot-topic"):
        wait_until_settled(cluster.admin, cluster.machines, margin_percent=30)
        screen = ward.look()
    owner = cluster.admin.owners(CLUSTER_NAME)[bundle]
    assert owner in screen.first
    assert topic in screen.first
    assert "Split" not in screen.advises
    assert "should be split" not in screen.text
