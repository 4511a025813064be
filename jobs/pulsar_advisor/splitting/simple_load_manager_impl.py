"""`SimpleLoadManagerImpl.doNamespaceBundleSplit`: each broker of the Simple manager splits its own bundles.

What Pulsar does: a bundle is too big if the loaded topics, sessions, rate or throughput of its broker's last report
exceed a limit (instantaneous figures, bandwidth limit in 64 bits). It is split if it has more than one loaded topic and
its namespace fewer bundles than `loadBalancerNamespaceMaximumBundles`; bundles chosen earlier in the same pass are not
counted. If the bundles of a namespace can't be counted, its broker's pass ends without a split. The split goes through
the admin API by the default algorithm.

Releases: the same in all.
Source: Pulsar `SimpleLoadManagerImpl`, 2.11 to 5.0.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import ClusterState, Indices, Integers
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import Hashes, hash_map_buckets, hash_map_orders
from pulsar_advisor.model.load.simple_load import simple_reports
from pulsar_advisor.model.strategy.decision import SplittingDecision
from pulsar_advisor.model.strategy.memory import SplitMemory
from pulsar_advisor.splitting.admin_split import admin_splits
from pulsar_advisor.splitting.cluster_bundles import bundle_counts, figures_of
from pulsar_advisor.splitting.limits import LEAST_TOPICS, LIMIT_KEYS, BundleFigures, SplitLimits
from pulsar_advisor.splitting.verdicts import SplitOutcome, Verdicts

Positions = npt.NDArray[np.intp]

READS: Final[frozenset[Input]] = frozenset({"bundle_traffic", "bundle_counts"})
SETTING_KEYS: Final = LIMIT_KEYS


def select(figures: BundleFigures, limits: SplitLimits, bundle_count: Integers, broker: Indices) -> Verdicts:
    """The brokers' selection; `bundle_count` is per namespace, -1 if it can't be counted, `broker` is per bundle."""
    verdicts = Verdicts.by_limits(figures, limits)
    big = verdicts.chosen()
    few = big[figures.topics[big] < LEAST_TOPICS]
    verdicts.record(few, SplitOutcome.FEW_TOPICS, figures.topics[few], LEAST_TOPICS)
    big = verdicts.chosen()
    count = bundle_count[figures.namespace[big]]
    full = count >= limits.namespace_bundles
    verdicts.record(big[full], SplitOutcome.NAMESPACE_FULL, count[full], limits.namespace_bundles)
    failing = np.isin(broker[big], broker[big[count < 0]])
    verdicts.record(big[failing & ~full], SplitOutcome.PASS_FAILS)
    verdicts.record(big[count < 0], SplitOutcome.BUNDLE_COUNT_UNKNOWN)
    return verdicts


def in_order(chosen: Positions, broker: Indices, hashes: Hashes) -> Positions:
    """The chosen rows as each broker has them split: in the order of its set; `broker` and `hashes` are per row."""
    of = broker[chosen]
    buckets = [hash_map_buckets(size) for size in np.bincount(of).tolist()]
    return chosen[hash_map_orders(hashes[chosen], of.astype(np.int64), np.array(buckets, dtype=np.int64))]


def decide(
    state: ClusterState, settings: LoadBalancerSettings, memory: SplitMemory
) -> tuple[SplittingDecision, SplitMemory]:
    """What all brokers would split after one report."""
    reports = simple_reports(state, settings)
    broker = state.bundles.owner[reports.rows]
    figures = figures_of(state, reports.rows, state.bundles.traffic)
    limits = SplitLimits.from_settings(settings, bandwidth_bits=64)
    verdicts = select(figures, limits, bundle_counts(state, settings), broker)
    splits = admin_splits(state, settings, figures, verdicts, in_order(verdicts.chosen(), broker, reports.hashes))
    return SplittingDecision(splits, verdicts.outcomes(figures)), memory
