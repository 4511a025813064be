"""Which bundles of an evolving cluster are split, by the rules and at the intervals of its load manager.

The leader of the Modular manager and the brokers of the Simple one look with each load report, here once a cycle; the
brokers of the Extensible manager every `loadBalancerSplitIntervalMinutes`, in the figures of their last statistics
pass. A split that cuts nowhere changes nothing and is left out.
"""

from __future__ import annotations

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.model.strategy.memory import SplitMemory
from pulsar_advisor.planning.plans.own_balancer import splitting_switched_off_by
from pulsar_advisor.planning.proposals.fitness import split_refusals
from pulsar_advisor.simulation.intervals import Intervals
from pulsar_advisor.simulation.moment import Moment
from pulsar_advisor.splitting.cluster_bundles import figures_of
from pulsar_advisor.splitting.limits import LEAST_TOPICS, SplitLimits, excess
from pulsar_advisor.splitting.registry import split_decider


def can_be_judged(state: ClusterState, settings: LoadBalancerSettings) -> bool:
    """Whether bundles are split at all: the cluster does so by itself, and the snapshot has what that depends on."""
    return not splitting_switched_off_by(settings) and not split_refusals(state, settings)


def passes_due(now: Moment, intervals: Intervals, elapsed_ms: int) -> int:
    """How often the manager has looked for bundles to split since the cycle before, this long after the start."""
    if now.state.load_manager != "extensible":
        return 1
    return elapsed_ms // intervals.split - (elapsed_ms - intervals.shedding) // intervals.split


def splits_due(
    now: Moment, settings: LoadBalancerSettings, memory: SplitMemory, passes: int
) -> tuple[tuple[Split, ...], SplitMemory]:
    """What is split in the first of these passes that splits anything, and what is remembered then."""
    if not passes:
        return (), memory
    examined = now.measured if now.state.load_manager == "extensible" else now.seen
    if not _any_too_big(examined, settings):
        return (), SplitMemory()
    decide = split_decider(examined.load_manager).decide
    for _ in range(passes):
        decision, memory = decide(examined, settings, memory)
        if splits := tuple(split for split in decision.splits if split.boundaries):
            return splits, memory
    return (), memory


def _any_too_big(examined: ClusterState, settings: LoadBalancerSettings) -> bool:
    """Whether a decider could choose anything: it looks at every bundle, one by one where it counts hits."""
    if settings.load_balancer_namespace_bundle_split_condition_hit_count_threshold < 0:
        return True
    bundles = examined.bundles
    rows = np.flatnonzero(bundles.reported & (bundles.topics >= LEAST_TOPICS)).astype(np.int32)
    figures = figures_of(examined, rows, bundles.long_term if examined.load_manager == "modular" else bundles.traffic)
    # In 32 bits a limit is at most what it is in 64.
    return bool(excess(figures, SplitLimits.from_settings(settings, bandwidth_bits=32)).exceeded.any())
