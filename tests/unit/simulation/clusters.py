"""Clusters to simulate, written down by the usage of each broker: a message a second takes a tenth of a CPU percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pulsar_advisor.model.cluster.cluster_state import ClusterState, IsolationPolicy, LoadManagerKind
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.simulation.simulate import Simulation, simulate
from states import BrokerRow, BundleRow, cluster_state

BYTES_OF_A_MESSAGE = 100_000.0

EVERY_LOAD_COUNTS = {"loadBalancerBundleUnloadMinThroughputThreshold": "0"}


def settings(release: str = "4.0.8", **what_if: str) -> LoadBalancerSettings:
    """The defaults of a release, but the least throughput worth an unload is zero; keys and texts as in a what-if."""
    return resolve_settings(release, what_if={**EVERY_LOAD_COUNTS, **what_if}).values


def situation(state: ClusterState, release: str = "4.0.8", **what_if: str) -> Situation:
    """A cluster with such settings, all of it fit."""
    return Situation.of_fit(state, resolve_settings(release, what_if={**EVERY_LOAD_COUNTS, **what_if}))


def all_by_messages(shedder: str, placement: str, of: Situation, **given: Any) -> Simulation:
    """The simulation in which all CPU usage goes with messages: the end of what is known that the pictures assume."""
    return simulate(shedder, placement, of, both_ends=True, **given).ends[0]


def cluster(
    usage: Mapping[str, Sequence[float]],
    *,
    idle: float = 0.0,
    in_one_namespace: bool = False,
    load_manager: LoadManagerKind = "modular",
    isolation_policies: tuple[IsolationPolicy, ...] = (),
) -> ClusterState:
    """Broker `name` has a bundle for each number: the percent of its CPU that it takes.

    The bundles are of namespace `t/name`, or all of `t/all`. `idle` is what a broker uses without messages, in percent.
    """
    brokers: list[BrokerRow] = []
    bundles: list[BundleRow] = []
    for name, shares in usage.items():
        rate = 10 * sum(shares)
        traffic = (rate / 2, rate / 2, rate / 2 * BYTES_OF_A_MESSAGE, rate / 2 * BYTES_OF_A_MESSAGE)
        brokers.append(
            BrokerRow(f"{name}:8080", cpu=(idle + sum(shares), 100.0), traffic=traffic, topics=2 * len(shares))
        )
        first = len(bundles) if in_one_namespace else 0
        for row, share in enumerate(shares, first):
            half = 5 * share
            figures = (half, half, half * BYTES_OF_A_MESSAGE, half * BYTES_OF_A_MESSAGE)
            bundle_range = f"0x{row << 24:08x}_0x{(row + 1) << 24:08x}"
            namespace = "t/all" if in_one_namespace else f"t/{name}"
            bundles.append(BundleRow(namespace, bundle_range, f"{name}:8080", figures, topics=2))
    return cluster_state(brokers, bundles, load_manager=load_manager, isolation_policies=isolation_policies)
