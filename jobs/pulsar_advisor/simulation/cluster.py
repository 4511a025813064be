"""The cluster itself, as no one sees it: which broker serves each bundle, and the load that results at once.

A bundle takes with it what it needed on the broker where the snapshot found it, by the `base_load` model. The base, and
what a broker reports beyond its bundles (heartbeats, bundles without figures), stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Bundles, ClusterState, Floats, Indices
from pulsar_advisor.model.load.base_load import usage_that_moves
from pulsar_advisor.model.load.proportional import usage_of
from pulsar_advisor.splitting.division import Division

COUNTS: Final = ("bundles", "topics", "producers", "consumers")
"""Column order of every four-column array of counts."""
BUNDLES, TOPICS, PRODUCERS, CONSUMERS = range(len(COUNTS))


@dataclass(frozen=True, eq=False)
class SimulatedCluster:
    """n brokers and m bundles; rows as in the cluster state it was made from."""

    owner: Indices
    """Per bundle, NO_ROW where no broker has it."""
    traffic: Floats
    """(m, 4), order of FIGURES; zero for bundles without figures."""
    usage: Floats
    """(m, 5), order of RESOURCES: what each bundle needs of a broker."""
    counts: Floats
    """(m, 4), order of COUNTS."""
    own_traffic: Floats
    """(n, 4): what each broker has without these bundles; likewise the next two."""
    own_usage: Floats
    own_counts: Floats

    @classmethod
    def of(cls, state: ClusterState, base_cpu: Floats | float = 0.0) -> Self:
        """The cluster at the moment of a snapshot; `base_cpu` is the CPU usage of each broker that no bundle takes."""
        bundles, brokers = state.bundles, state.brokers
        moving = bundles.reported & (bundles.owner != NO_ROW)
        traffic = np.where(moving[:, None] & np.isfinite(bundles.traffic), bundles.traffic, 0.0)
        usage = np.zeros((len(bundles), brokers.usage.shape[1]))
        owner = bundles.owner[moving]
        usage[moving] = usage_that_moves(state, base_cpu, traffic[moving], owner)
        counts = _counts(bundles) * moving[:, None]
        of_each = (brokers.bundles, brokers.topics, brokers.producers, brokers.consumers)
        of_brokers = np.column_stack(of_each).astype(np.float64)
        alone = cls(bundles.owner, traffic, usage, counts, np.zeros(0), np.zeros(0), np.zeros(0))
        number = len(brokers)
        with np.errstate(invalid="ignore", over="ignore"):
            return replace(
                alone,
                own_traffic=brokers.traffic - alone._sums(traffic, number),
                own_usage=brokers.usage - alone._sums(usage, number),
                own_counts=of_brokers - alone._sums(counts, number),
            )

    def moved(self, bundles: npt.ArrayLike, to: npt.ArrayLike) -> Self:
        """After these bundles (rows) have moved to these brokers (rows)."""
        rows = np.asarray(bundles, dtype=np.intp)
        if not len(rows):
            return self
        owner = self.owner.copy()
        owner[rows] = to
        return replace(self, owner=owner)

    def divided(self, division: Division) -> Self:
        """With the load of each split bundle divided among its children, which stay with its broker."""
        parent, bundles = division.parent, division.state.bundles
        traffic, usage = self.traffic[parent] * division.shares, self.usage[parent]
        children = np.flatnonzero(division.is_child)
        # A child takes a share of its parent's needs, as a bundle takes a share of its broker's usage.
        usage[children] = usage_of(traffic[children], self.traffic[parent[children]], usage[children])
        counts = self.counts[parent]
        has_figures = bundles.reported[children] & (counts[children, BUNDLES] > 0)
        counts[children] = _counts(bundles)[children] * has_figures[:, None]
        return replace(self, owner=self.owner[parent], traffic=traffic, usage=usage, counts=counts)

    def under(self, factor: Floats | float) -> Self:
        """With the load of every bundle multiplied by its factor."""
        if np.all(np.equal(factor, 1.0)):
            return self
        each = np.broadcast_to(np.asarray(factor), (len(self.owner),))[:, None]
        return replace(self, traffic=self.traffic * each, usage=self.usage * each)

    @cached_property
    def broker_traffic(self) -> Floats:
        """(n, 4), order of FIGURES."""
        return self.own_traffic + self._sums(self.traffic, len(self.own_traffic))

    @cached_property
    def broker_usage(self) -> Floats:
        """(n, 5), order of RESOURCES."""
        return self.own_usage + self._sums(self.usage, len(self.own_usage))

    @cached_property
    def broker_counts(self) -> Floats:
        """(n, 4), order of COUNTS."""
        return self.own_counts + self._sums(self.counts, len(self.own_counts))

    def _sums(self, figures: Floats, brokers: int) -> Floats:
        """Sums over the bundles of each broker."""
        of_none = brokers  # bundles without a broker are added up beside the brokers, and left out
        owner = np.where(self.owner == NO_ROW, of_none, self.owner)
        sums = [np.bincount(owner, weights=column, minlength=brokers + 1)[:brokers] for column in figures.T]
        return np.column_stack(sums).astype(np.float64)


def _counts(bundles: Bundles) -> Floats:
    """(m, 4), order of COUNTS: what each bundle adds to its broker's."""
    each = (np.ones(len(bundles)), bundles.topics, bundles.producers, bundles.consumers)
    return np.column_stack(each).astype(np.float64)
