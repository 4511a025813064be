"""The four limits that make a bundle too big, the figures compared with them, and which limit decided.

Every manager compares with a strict ">", in the order topics, sessions, message rate, bandwidth. They differ in the
figures (Modular: long-term averages; Simple and Extensible: the last statistics pass) and in the arithmetic: Modular
and Extensible multiply the bandwidth limit in 32 bits, so 2048 MiB/s and above wrap, Simple in 64 bits; all add
sessions in 32 bits. Source: Pulsar `BundleSplitterTask`, `DefaultNamespaceBundleSplitStrategyImpl`,
`SimpleLoadManagerImpl` (unchanged from 2.11 to 5.0; read from the 4.0.8 classes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import Booleans, Floats, Indices, Integers
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.outcomes import Codes

LEAST_TOPICS: Final = 2
"""Number of loaded topics below which no manager splits a bundle."""

LIMIT_KEYS: Final = (
    "loadBalancerNamespaceBundleMaxTopics",
    "loadBalancerNamespaceBundleMaxSessions",
    "loadBalancerNamespaceBundleMaxMsgRate",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes",
    "loadBalancerNamespaceMaximumBundles",
    "defaultNamespaceBundleSplitAlgorithm",
)
"""Pulsar's keys that every decider reads."""


@dataclass(frozen=True, eq=False)
class BundleFigures:
    """What a decider looks at, one row per bundle, in the order in which Pulsar would visit them."""

    index: Indices
    """Row of the bundle in the cluster state."""
    namespace: Indices
    """Row of its namespace."""
    lower: Integers
    upper: Integers
    topics: Integers
    """Loaded topics."""
    sessions: Integers
    """Producers and consumers together, as a 32-bit sum."""
    msg_rate: Floats
    """Messages/s, in and out together."""
    msg_throughput: Floats
    """Bytes/s, in and out together."""

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True)
class SplitLimits:
    """When a bundle is too big, and how many bundles its namespace may have."""

    topics: int
    sessions: int
    """Not a limit unless positive."""
    msg_rate: int
    """Messages/s."""
    bandwidth_bytes: int
    """Bytes/s."""
    namespace_bundles: int

    @classmethod
    def from_settings(cls, settings: LoadBalancerSettings, *, bandwidth_bits: int) -> SplitLimits:
        """The limits in force; `bandwidth_bits` is the width in which the manager computes MiB/s times 2**20."""
        return cls(
            topics=settings.load_balancer_namespace_bundle_max_topics,
            sessions=settings.load_balancer_namespace_bundle_max_sessions,
            msg_rate=settings.load_balancer_namespace_bundle_max_msg_rate,
            bandwidth_bytes=_wrap(settings.load_balancer_namespace_bundle_max_bandwidth_mbytes << 20, bandwidth_bits),
            namespace_bundles=settings.load_balancer_namespace_maximum_bundles,
        )


def _wrap(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def sessions_of(producers: Integers, consumers: Integers) -> Integers:
    """Producers plus consumers as Pulsar adds them: in 32 bits, wrapping."""
    with np.errstate(over="ignore"):
        wrapped: Integers = (producers + consumers).astype(np.int32).astype(np.int64)
    return wrapped


REASONS: Final = ("Unknown", "Topics", "Sessions", "MsgRate", "Bandwidth")
"""Pulsar's reasons for a split (`SplitDecision.Reason`); the position is the code of `Excess.limit`."""


@dataclass(frozen=True, eq=False)
class Excess:
    """Per bundle, the first limit it exceeds, else the one it comes closest to, and both sides of that comparison."""

    exceeded: Booleans
    limit: Codes
    """Index into `REASONS`, from 1."""
    left: Floats
    right: Floats


def excess(figures: BundleFigures, limits: SplitLimits) -> Excess:
    """Compares every bundle with the four limits. A NaN figure exceeds nothing, as in Java."""
    bounds = (limits.topics, limits.sessions, limits.msg_rate, limits.bandwidth_bytes)
    columns = (figures.topics, figures.sessions, figures.msg_rate, figures.msg_throughput)
    exceeded = np.zeros(len(figures), dtype=np.bool_)
    limit = np.ones(len(figures), dtype=np.uint8)
    left = figures.topics.astype(np.float64)
    fullest = np.full(len(figures), -np.inf)
    for reason, (column, bound) in enumerate(zip(columns, bounds, strict=True), start=1):
        if column is figures.sessions and bound <= 0:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            fill = column / bound
        above = column > bound
        decides = ~exceeded & (above | (fill > fullest))
        for of_all, of_this in ((limit, reason), (left, column), (fullest, fill)):
            np.copyto(of_all, of_this, where=decides, casting="unsafe")
        exceeded |= above
    return Excess(exceeded, limit, left, np.array((0, *bounds), dtype=np.float64)[limit])


def rank_within(namespace: Indices) -> Integers:
    """How many earlier entries have the same namespace."""
    order = np.argsort(namespace, kind="stable")
    ordered = namespace[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    rank = np.empty(len(namespace), dtype=np.int64)
    rank[order] = np.arange(len(namespace)) - np.repeat(starts, np.diff(np.append(starts, len(namespace))))
    return rank
