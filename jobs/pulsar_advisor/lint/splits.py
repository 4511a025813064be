"""Whether automatic splits happen where they help, and end."""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.lint.rule import MIB, Case, Violation, info, warning
from pulsar_advisor.model.cluster.cluster_state import Booleans, Floats, rate_per_s, throughput_bytes_per_s
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.splitting.cluster_bundles import automatic_boundaries, figures_of
from pulsar_advisor.splitting.limits import SplitLimits, excess

_FLOW: Final = "flow_or_qps_equally_divide"


def _above_limits(case: Case) -> Booleans:
    """Bundles above a limit at which Pulsar splits, by the figures of the last statistics pass."""
    bundles = case.state.bundles
    every = np.arange(len(bundles), dtype=np.int32)
    limits = SplitLimits.from_settings(case.settings, bandwidth_bits=64 if case.state.load_manager == "simple" else 32)
    above = excess(figures_of(case.state, every, bundles.traffic), limits).exceeded
    return above & bundles.reported & bundles.in_boundaries


def _busier(case: Case, traffic: Floats, times: int = 1) -> Booleans:
    """Whether a rate or throughput is above the limit of a bundle, `times` over.

    The limit as it is meant: a bandwidth of 2048 MiB/s or more, which wraps in `_above_limits`, doesn't here.
    """
    limits = SplitLimits.from_settings(case.settings, bandwidth_bits=64)
    busier: Booleans = (rate_per_s(traffic) > times * limits.msg_rate) | (
        throughput_bytes_per_s(traffic) > times * limits.bandwidth_bytes
    )
    return busier


def _children(case: Case, bundle: int) -> int:
    """How many bundles an automatic split makes of one; 1 if its algorithm finds none, or can't be asked."""
    try:
        return 1 + len(automatic_boundaries(case.state, case.settings, bundle) or ())
    except DataNotFit:
        return 1


def _busiest(case: Case, bundles: Booleans) -> int:
    rows = np.flatnonzero(bundles)
    return int(rows[case.bundle_throughput[rows].argmax()])


def _busiest_of(case: Case, bundles: Booleans) -> str:
    number = np.count_nonzero(bundles)
    others = f" and {number - 1} more" if number > 1 else ""
    return f"{case.state.bundle_name(_busiest(case, bundles))}{others}"


@info(
    source="ModularLoadManagerImpl.checkNamespaceBundleSplit, SplitScheduler (2.11.0 to 5.0.1)",
    remedy="set loadBalancerAutoBundleSplitEnabled=true, or apply the splits of a plan",
)
def large_bundles_are_split(case: Case) -> Violation | None:
    """Automatic splits are enabled while a bundle is above a limit.

    A bundle is the smallest amount of load that can move.
    """
    large = _above_limits(case) & (case.state.bundles.topics > 1)
    if case.settings.load_balancer_auto_bundle_split_enabled or not large.any():
        return None
    return Violation(f"{_busiest_of(case, large)} should be split", {"loadBalancerAutoBundleSplitEnabled": "true"})


@warning(
    source="apache/pulsar#9484; BundleSplitterTask, DefaultNamespaceBundleSplitStrategyImpl (2.11.0 to 5.0.1)",
    remedy="raise loadBalancerNamespaceMaximumBundles",
)
def namespaces_have_room_for_splits(case: Case) -> Violation | None:
    """A namespace with a bundle above a limit may have more bundles.

    At loadBalancerNamespaceMaximumBundles automatic splits end, and there is no way to merge bundles.
    """
    bundles, maximum = case.state.bundles, case.settings.load_balancer_namespace_maximum_bundles
    counts = case.state.bundle_counts[bundles.namespace]
    stuck = _above_limits(case) & (bundles.topics > 1) & (counts >= maximum)
    if not stuck.any():
        return None
    return Violation(
        f"above a limit: {_busiest_of(case, stuck)}; its namespace has {counts[_busiest(case, stuck)]} bundles",
        {"loadBalancerNamespaceMaximumBundles": str(2 * int(counts[stuck].max()))},
    )


@warning(
    source="apache/pulsar#11937, apache/pulsar#12527",
    remedy="give the topic more partitions, or raise the limits; of a scalable topic of Pulsar 5, split the segment: "
    "pulsar-admin scalable-topics split-segment",
)
def topics_fit_into_bundles(case: Case) -> Violation | None:
    """No single topic is above the limits of a bundle.

    Splits go on until the topic is alone in its bundle, and that bundle is still above the limit.
    """
    topics = case.state.topics
    hot = np.flatnonzero(topics.loaded & _busier(case, topics.traffic))
    if not len(hot):
        return None
    hottest = int(hot[throughput_bytes_per_s(topics.traffic[hot]).argmax()])
    traffic = topics.traffic[hottest]
    which = "alone" if len(hot) == 1 else f"alone, the busiest of {len(hot)} such topics,"
    return Violation(
        f"{topics.names[hottest]} {which} has {rate_per_s(traffic):,.0f} msg/s and "
        f"{throughput_bytes_per_s(traffic) / MIB:.1f} MiB/s"
    )


@warning(
    source="apache/pulsar#22254; DefaultNamespaceBundleSplitStrategyImpl (3.0.7 to 5.0.1)",
    remedy="set another defaultNamespaceBundleSplitAlgorithm, or split these bundles by a plan",
    load_managers=("extensible",),
)
def flow_splits_in_two(case: Case) -> Violation | None:
    """Every bundle above a limit can be split in two by flow_or_qps_equally_divide.

    It fills one child after the other up to the limits. The Extensible manager splits only if that makes two children,
    so a bundle is split only if its topics, in the order of their hashes, fill just two.
    """
    settings = case.settings
    by_flow = settings.default_namespace_bundle_split_algorithm == _FLOW
    if not by_flow or not settings.load_balancer_auto_bundle_split_enabled:
        return None
    larger = _busier(case, case.state.bundles.traffic, times=2)
    stuck = _above_limits(case) & (case.state.bundles.topics > 1)
    for bundle in np.flatnonzero(stuck).tolist():
        children = _children(case, bundle)
        # One that is barely above a limit isn't divided yet.
        stuck[bundle] = children > 2 or (larger[bundle] and children != 2)
    if not stuck.any():
        return None
    return Violation(
        f"not split in two: {_busiest_of(case, stuck)}",
        {"defaultNamespaceBundleSplitAlgorithm": "topic_count_equally_divide"},
    )


@info(
    source="ModularLoadManagerImpl.checkNamespaceBundleSplit, SimpleLoadManagerImpl.doNamespaceBundleSplit",
    remedy="set loadBalancerAutoUnloadSplitBundlesEnabled=true",
    load_managers=("modular", "simple"),
)
def children_of_splits_move(case: Case) -> Violation | None:
    """The children of an automatic split are unloaded.

    Otherwise all of them stay on the broker of their parent, and a split relieves none.
    """
    settings = case.settings
    if not settings.load_balancer_auto_bundle_split_enabled or settings.load_balancer_auto_unload_split_bundles_enabled:
        return None
    return Violation("loadBalancerAutoUnloadSplitBundlesEnabled is false")
