"""`BundleSplitterTask`: the leader of the Modular manager looks for bundles that have grown too big.

What Pulsar does: a bundle with at least two loaded topics in any broker's report is too big if its loaded topics, its
sessions, or its long-term rate or throughput (in and out, over up to 1000 samples) exceed a limit. It is chosen while
its namespace has fewer bundles than `loadBalancerNamespaceMaximumBundles`, including those chosen earlier in the same
pass; if that limit binds, Java's map order decides which ones win. The leader then splits each through the admin API by
the default algorithm, skipping ranges that can't be cut and bundles that are gone.

Releases: selection is the same from 2.10 to 5.0.1. From 3.0.1 nothing is split while fewer than two brokers are
known. A bundle that is gone is skipped from January 2026 on (4.0.9, 4.2) and fails before; either way nothing is
split.
Source: Pulsar `BundleSplitterTask`, `ModularLoadManagerImpl.checkNamespaceBundleSplit`, 2.10 to 5.0.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import ClusterState, Integers
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import bundle_name_hashes, hash_map_order, name_hashes
from pulsar_advisor.model.strategy.decision import SplittingDecision
from pulsar_advisor.model.strategy.memory import SplitMemory
from pulsar_advisor.splitting.admin_split import admin_splits
from pulsar_advisor.splitting.cluster_bundles import bundle_counts, figures_of, reported_bundles
from pulsar_advisor.splitting.limits import LEAST_TOPICS, LIMIT_KEYS, BundleFigures, SplitLimits, rank_within
from pulsar_advisor.splitting.verdicts import SplitOutcome, Verdicts

_MORE_THAN_ONE_BROKER_SINCE = (3, 0, 1)


READS: Final[frozenset[Input]] = frozenset({"long_term_averages", "bundle_counts"})
SETTING_KEYS: Final = LIMIT_KEYS


def select(figures: BundleFigures, limits: SplitLimits, bundle_count: Integers) -> Verdicts:
    """The task itself: the leader's selection; `bundle_count` is per namespace, -1 if it can't be counted."""
    verdicts = Verdicts.by_limits(figures, limits)
    few = figures.topics < LEAST_TOPICS
    verdicts.record(few, SplitOutcome.FEW_TOPICS, figures.topics[few], LEAST_TOPICS)

    big = verdicts.chosen()
    count = bundle_count[figures.namespace[big]]
    verdicts.record(big[count < 0], SplitOutcome.BUNDLE_COUNT_UNKNOWN)
    big, count = big[count >= 0], count[count >= 0]
    # The k-th bundle of a namespace is chosen while count + k stays below the maximum, so the first ones win.
    full = count + rank_within(figures.namespace[big]) >= limits.namespace_bundles
    would_have = np.maximum(count, limits.namespace_bundles)
    verdicts.record(big[full], SplitOutcome.NAMESPACE_FULL, would_have[full], limits.namespace_bundles)
    return verdicts


def decide(
    state: ClusterState, settings: LoadBalancerSettings, memory: SplitMemory
) -> tuple[SplittingDecision, SplitMemory]:
    """What the leader would split in one refresh, in the order of its selection."""
    figures = figures_of(state, reported_bundles(state), state.bundles.long_term)
    limits = SplitLimits.from_settings(settings, bandwidth_bits=32)
    verdicts = select(figures, limits, bundle_counts(state, settings))
    known_brokers = np.count_nonzero(state.brokers.available)
    if settings.behaviour >= _MORE_THAN_ONE_BROKER_SINCE and known_brokers <= 1:
        verdicts.record(verdicts.chosen(), SplitOutcome.ONE_BROKER, known_brokers, 1)
    chosen = verdicts.chosen()
    hashes = bundle_name_hashes(
        name_hashes(state.namespaces.names)[figures.namespace[chosen]], figures.lower[chosen], figures.upper[chosen]
    )
    splits = admin_splits(state, settings, figures, verdicts, chosen[hash_map_order(hashes)])
    return SplittingDecision(splits, verdicts.outcomes(figures)), memory
