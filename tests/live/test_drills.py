"""Drills: it is 3 a.m., a cluster is ill, and the first screen is all that the operator sees.

Each makes real brokers ill in one way, under a load that lasts. What the screen must say, and what it mustn't, was
written before anybody looked.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness import sensor
from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.load import running_load
from harness.skew import wait_until_settled
from harness.workload import hot_topic_workload
from live.first_screen import Operator, Screen
from live.plans import divide, ranges_of
from live.starting import with_cpu_skew

pytestmark = [pytest.mark.live, pytest.mark.full]

REGISTERED_S = 90
"""ZooKeeper forgets a broker after 30 s without it."""
BETWEEN_UNLOADS_S = 2.0
UNLOADS = 12
BURNT_CORES = 3.0
NOWHERE = "drills/nowhere"


@pytest.fixture(scope="module")
def healthy(
    cluster_to_drill: LiveCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Operator, Screen]]:
    with running_load(cluster_to_drill, "gentle") as load:
        admin, operator = cluster_to_drill.admin, Operator(cluster_to_drill, tmp_path_factory.mktemp("drills"))
        # Half of what goes in and out: at least one pass of every broker's statistics.
        wait(lambda: sum(sensor.messages_per_s(admin, url) for url in admin.urls) > load.messages_per_s)
        looks = (operator.look() for _ in range(3))
        yield operator, next(screen for screen in looks if "could not be judged" not in screen.headline)


@pytest.fixture
def operator(healthy: tuple[Operator, Screen]) -> Operator:
    return healthy[0]


def only(operator: Operator, manager: str) -> None:
    if operator.cluster.options.load_manager != manager:
        pytest.skip(f"the same under the {manager} load manager, where it is tried")


def wait(until: Callable[[], bool], limit_s: float = REGISTERED_S) -> None:
    deadline = time.monotonic() + limit_s
    while not until():
        assert time.monotonic() < deadline, "not within the time limit"
        time.sleep(0.5)


def assert_no_split(screen: Screen) -> None:
    """It can't be undone."""
    assert "Split " not in screen.advises
    assert "should be split" not in screen.text


def registered(cluster: LiveCluster) -> list[str]:
    brokers: list[str] = cluster.living_admin.read(f"/brokers/{CLUSTER_NAME}")
    return brokers


def test_of_a_cluster_in_health_nothing_is_said_to_ail(healthy: tuple[Operator, Screen]) -> None:
    _, screen = healthy
    assert screen.headline.startswith(("Do nothing: ", "Unload "))
    for alarm in ("registered", "isolation policies", "were unloaded", "should be split", "something else"):
        assert alarm not in screen.text.lower()


def test_namespaces_without_a_broker_by_their_isolation_policy_are_named_first(operator: Operator) -> None:
    admin = operator.cluster.admin
    divide(operator.cluster, NOWHERE, 2)
    for number in range(8):
        admin.write("PUT", f"/persistent/{NOWHERE}/topic-{number}")
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
        for text in ranges_of(operator.cluster, NOWHERE):
            admin.write("PUT", f"/namespaces/{NOWHERE}/{text}/unload")
        screen = operator.look()
    finally:
        admin.write("DELETE", path)
    assert screen.headline.startswith(f"Isolation policies allow {NOWHERE} on no registered broker")


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


def test_that_something_else_moves_bundles_is_said_first(operator: Operator) -> None:
    operator.look()
    with unloading(operator.cluster) as many:
        assert many.wait(REGISTERED_S)
        screen = operator.look()
    assert " were unloaded " in screen.headline[:40]
    assert "not by Pulsar's own balancer" in screen.headline
    assert "before you apply a plan" in screen.headline
    assert_no_split(screen)


def test_a_broker_that_was_killed_is_named_first_until_it_is_back(operator: Operator) -> None:
    cluster = operator.cluster
    victim = cluster.brokers[1]
    cluster.kill_broker(victim)
    try:
        just_now = operator.look()
        wait(lambda: victim.broker_id not in registered(cluster))
        later, much_later = operator.look(), operator.look()
    finally:
        cluster.restart_broker(victim, killed=True)
    back = operator.look()
    for screen in (just_now, later, much_later):
        assert victim.broker_id in screen.headline.partition(". ")[0]
        assert_no_split(screen)
    assert "no longer" in much_later.headline
    assert "no longer" not in back.text
    assert "without figures" not in back.text


def test_a_broker_that_hangs_is_named_first(operator: Operator) -> None:
    only(operator, "modular")
    victim = operator.cluster.brokers[2]
    os.kill(victim.process.pid, signal.SIGSTOP)
    try:
        screen = operator.look()
    finally:
        os.kill(victim.process.pid, signal.SIGCONT)
    # It must not be merely left out.
    assert victim.broker_id in screen.headline.partition(". ")[0]
    assert_no_split(screen)
    wait(lambda: victim.broker_id in registered(operator.cluster))


def test_cpu_that_another_process_burns_is_told_from_load(operator: Operator) -> None:
    only(operator, "modular")
    cluster = with_cpu_skew(operator.cluster)
    victim = cluster.brokers[2]
    cluster.burn_cpu(victim, BURNT_CORES)
    try:
        wait_until_settled(cluster.admin, cluster.machines, margin_percent=30)
        screen = operator.look()
    finally:
        cluster.burn_cpu(victim, 0)
    assert victim.broker_id in screen.first
    assert "something else on its machine uses CPU" in screen.first
    assert_no_split(screen)


def test_one_topic_with_most_of_the_traffic_is_named_and_its_bundle_not_split(operator: Operator) -> None:
    cluster = with_cpu_skew(operator.cluster)
    hot = hot_topic_workload()
    topic, (bundle,) = hot.topics[0].name, hot.brokers
    with running_load(cluster, "hot-topic"):
        wait_until_settled(cluster.admin, cluster.machines, margin_percent=30)
        screen = operator.look()
    owner = cluster.admin.owners(CLUSTER_NAME)[bundle]
    assert owner in screen.first
    assert topic in screen.first
    assert_no_split(screen)
