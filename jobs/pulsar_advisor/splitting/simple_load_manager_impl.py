"""`SimpleLoadManagerImpl.doNamespaceBundleSplit`: each broker of the Simple manager splits its own bundles.

A bundle is too big if the loaded topics, sessions, rate or throughput of its broker's last report exceed a limit
(instantaneous figures, bandwidth limit in 64 bits). It is split if it has more than one loaded topic and its namespace
fewer bundles than `loadBalancerNamespaceMaximumBundles`; bundles chosen earlier in the same pass are not counted. The
split goes through the admin API by the default algorithm. Unchanged from 2.10 to 5.0.
Source: Pulsar `SimpleLoadManagerImpl` (read from the 4.0.8 classes).
"""

from __future__ import annotations

from typing import Final

from pulsar_advisor.model.cluster_state import ClusterState, Integers
from pulsar_advisor.model.decision import SplittingDecision
from pulsar_advisor.model.inputs import Input
from pulsar_advisor.model.memory import SplitMemory
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.splitting.admin_split import admin_splits
from pulsar_advisor.splitting.cluster_bundles import bundle_counts, figures_of, reported_bundles
from pulsar_advisor.splitting.limits import LEAST_TOPICS, LIMIT_KEYS, BundleFigures, SplitLimits
from pulsar_advisor.splitting.verdicts import SplitOutcome, Verdicts

READS: Final[frozenset[Input]] = frozenset({"bundle_traffic", "bundle_counts"})
SETTING_KEYS: Final = LIMIT_KEYS


def select(figures: BundleFigures, limits: SplitLimits, bundle_count: Integers) -> Verdicts:
    """The brokers' selection; `bundle_count` is per namespace, -1 if it can't be counted."""
    verdicts = Verdicts.by_limits(figures, limits)
    big = verdicts.chosen()
    count = bundle_count[figures.namespace[big]]
    verdicts.record(big[count < 0], SplitOutcome.BUNDLE_COUNT_UNKNOWN)
    full = count >= limits.namespace_bundles
    verdicts.record(big[full], SplitOutcome.NAMESPACE_FULL, count[full], limits.namespace_bundles)
    few = big[figures.topics[big] < LEAST_TOPICS]
    verdicts.record(few, SplitOutcome.FEW_TOPICS, figures.topics[few], LEAST_TOPICS)
    return verdicts


def decide(
    state: ClusterState, settings: LoadBalancerSettings, memory: SplitMemory
) -> tuple[SplittingDecision, SplitMemory]:
    """What all brokers would split after one report."""
    figures = figures_of(state, reported_bundles(state), state.bundles.traffic)
    limits = SplitLimits.from_settings(settings, bandwidth_bits=64)
    verdicts = select(figures, limits, bundle_counts(state, settings))
    splits = admin_splits(state, settings, figures, verdicts, verdicts.chosen())
    return SplittingDecision(splits, verdicts.outcomes(figures)), memory
