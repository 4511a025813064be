"""Plans for brokers on unequal machines: what their usage is after a plan lies in the range that it predicted.

The CPU sensor gives each broker cores, a base and a cost per message of its own. Brokers report what follows from that
and from the messages they really serve.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from decisions.replay import settings_of
from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.load import running_load
from harness.sensor import Machine
from harness.shell import Shell, plain_connection
from harness.skew import wait_until_settled
from live.goals import CarriedOut, carry_out, full_name, judge
from pulsar_advisor.planning.forecast import loads_of, usage_ratios
from pulsar_advisor.storage.root import LATEST, Root
from pulsar_advisor.tables.state import cluster_state

pytestmark = [pytest.mark.live, pytest.mark.full]

MACHINES = {
    0: Machine(),  # the hot one
    1: Machine(cores=8, idle_cores=0.4),  # larger
    2: Machine(cores=2.5, idle_cores=0.2, cores_per_1000_messages=3.0),  # smaller, and slower
    3: Machine(idle_cores=2.0, cores_per_1000_messages=0.2),  # its CPU hardly follows messages
}
SAMPLED_S = 125
"""Brokers sample their CPU once a minute: two samples."""
ARRIVAL_LIMIT_S = 60
NOISE_RATIO = 0.01
"""How much the usage of a broker that nothing happens to differs between two captures."""
LEAST_INSIDE = 0.9


@dataclass(frozen=True)
class Figure:
    """One broker after one plan; usage ratios."""

    goal: str
    broker: str
    before: float
    lowest: float
    likely: float
    highest: float
    actual: float

    @property
    def inside(self) -> bool:
        return self.lowest - NOISE_RATIO <= self.actual <= self.highest + NOISE_RATIO

    def row(self) -> str:
        figures = (self.before, self.lowest, self.likely, self.highest, self.actual)
        cells = (self.goal, self.broker, *(f"{figure:.1%}" for figure in figures), "yes" if self.inside else "no")
        return f"| {' | '.join(cells)} |"


@pytest.fixture
def cluster(start_cluster: Callable[[ClusterOptions], LiveCluster]) -> Iterator[LiveCluster]:
    cluster = start_cluster(ClusterOptions(brokers=len(MACHINES), machines=MACHINES))
    if not cluster.has_cpu_skew:
        pytest.skip("this machine doesn't permit mount namespaces, so all brokers report the host's CPU")
    with running_load(cluster):
        wait_until_settled(cluster.admin, cluster.machines)
        yield cluster


def test_the_usage_after_a_plan_is_in_the_range_that_it_predicted(cluster: LiveCluster, tmp_path: Path) -> None:
    shell = Shell(tmp_path, plain_connection(cluster))
    hot, _, smaller, _ = cluster.broker_ids
    found: list[Figure] = []
    judge(shell)
    for goal in (("relieve", hot, "--to", "60%"), ("balance",), ("drain", smaller)):
        done = carry_out(cluster, shell, *goal)
        bring_home(cluster, done)
        time.sleep(SAMPLED_S)
        wait_until_settled(cluster.admin, cluster.machines)
        judge(shell)
        found += figures(goal[0], done.plan["predicted"], actual(shell))
        print("\n".join(("", *(figure.row() for figure in found))))
    assert sum(figure.inside for figure in found) >= LEAST_INSIDE * len(found)


def bring_home(cluster: LiveCluster, done: CarriedOut) -> None:
    """Unload the bundles that missed their broker until they are there: the prediction is about the whole plan."""
    wanted = {full_name(step): step["destination"] for step in done.unloads}
    deadline = time.monotonic() + ARRIVAL_LIMIT_S
    while True:
        owners = cluster.admin.owners(CLUSTER_NAME)
        astray = [bundle for bundle, broker in wanted.items() if owners.get(bundle) != broker]
        if not astray:
            return
        assert time.monotonic() < deadline, astray
        for bundle in astray:
            cluster.admin.write("PUT", f"/namespaces/{bundle}/unload", params={"destinationBroker": wanted[bundle]})
        time.sleep(1)


def figures(goal: str, predicted: dict[str, Any], actual: dict[str, float]) -> list[Figure]:
    before, after = predicted["before"]["brokers"], predicted["after"]["brokers"]
    return [
        Figure(
            goal,
            broker,
            before[broker]["usage_ratio"],
            *(after[broker][name] for name in ("lowest_usage_ratio", "usage_ratio", "highest_usage_ratio")),
            actual[broker],
        )
        for broker in after
    ]


def actual(shell: Shell) -> dict[str, float]:
    """The usage of each broker in the newest snapshot."""
    root = Root(str(shell.root), CLUSTER_NAME)
    snapshot = root.resolve(LATEST)
    state = cluster_state(root, snapshot, "fresh")
    ratios = usage_ratios(loads_of(state), settings_of(root, snapshot))
    return dict(zip(state.brokers.ids, ratios.tolist(), strict=True))
