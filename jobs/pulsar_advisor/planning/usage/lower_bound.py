"""A bound for moves of whole bundles: the usage below which no such moves bring the busiest broker.

It shows how near a plan is to the best one; a plan that splits bundles may go below it. A relaxation, so moves that
reach it need not exist: bundles can be divided at will, policies and the number of moves don't count, and each resource
is balanced by itself. Three bounds hold in the `base_load` model, and the highest of them is the answer: what stays on
a broker; the level to which the moving part of a resource fills the brokers like water; and the largest bundle, which
one broker must carry whole on top of what stays there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, RESOURCES, ClusterState, Floats
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.base_load import usage_that_moves
from pulsar_advisor.model.load.resource_usage import weighted_maximum


@dataclass(frozen=True)
class LowestUsage:
    """The usage (ratio) below which no moves bring the busiest available broker."""

    by_bundles: float
    """If bundles stay whole."""
    by_parts: float
    """For plans that split bundles, too."""


@np.errstate(all="ignore")
def lowest_usage(state: ClusterState, settings: LoadBalancerSettings, base_cpu: Floats) -> LowestUsage | None:
    """The bounds, which hold if `base_cpu` is the base of all brokers; None without an available broker."""
    brokers, bundles = state.brokers, state.bundles
    available = np.flatnonzero(brokers.available)
    if not len(available):
        return None
    moving = np.flatnonzero(bundles.reported & (bundles.owner != NO_ROW) & brokers.available[bundles.owner])
    owner = bundles.owner[moving]
    needs = usage_that_moves(state, base_cpu, bundles.traffic[moving], owner)
    sums = np.column_stack([np.bincount(owner, weights=need, minlength=len(brokers)) for need in needs.T])
    stays = np.nan_to_num(brokers.usage, posinf=0.0, neginf=0.0) - sums
    by_parts = [float(weighted_maximum(stays, brokers.limit, settings)[available].max())]
    by_bundles = list[float]()
    for resource in range(len(RESOURCES)):
        share = _share_of_one_unit(state, settings, resource)[available]
        if not (share > 0).all():
            continue  # a broker without a limit takes any amount
        fixed = stays[available, resource] * share
        by_parts.append(level(fixed, share, float(needs[:, resource].sum())))
        if len(moving):
            by_bundles.append(float((fixed + float(needs[:, resource].max()) * share).min()))
    return LowestUsage(max(by_parts + by_bundles), max(by_parts))


def _share_of_one_unit(state: ClusterState, settings: LoadBalancerSettings, resource: int) -> Floats:
    """By how much (ratio, weighted) one unit of a resource adds to the usage of each broker."""
    unit = np.zeros_like(state.brokers.usage)
    unit[:, resource] = 1.0
    return weighted_maximum(unit, state.brokers.limit, settings)


def level(fixed: Floats, share: Floats, amount: float) -> float:
    """The lowest common level to which brokers that start at `fixed` rise if `amount` units are poured over them."""
    order = np.argsort(fixed)
    start, room = fixed[order], 1.0 / share[order]
    capacity = np.cumsum(room)
    levels = (amount + np.cumsum(start * room)) / capacity
    above = np.append(start[1:], np.inf)
    reached = int(np.argmax(levels <= above))
    return max(float(levels[reached]), float(start[-1]))
