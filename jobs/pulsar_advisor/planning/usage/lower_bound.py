"""A bound for moves of whole bundles: the usage below which no such moves bring the busiest broker.

It shows how near a plan is to the best one; a plan that splits bundles may go below it. A relaxation, so moves that
reach it need not exist: bundles can be divided at will, policies and the number of moves don't count, and each resource
is balanced by itself. Three bounds hold in the `base_load` model, and the highest of them is the answer: what stays on
a broker; the level to which the moving part of a resource fills the brokers like water; and the largest bundle, which
one broker must carry whole on top of what stays there.
"""

from __future__ import annotations

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, RESOURCES, ClusterState, Floats
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.base_load import usage_that_moves
from pulsar_advisor.model.load.resource_usage import weighted_maximum


@np.errstate(all="ignore")
def lowest_maximum(
    state: ClusterState, settings: LoadBalancerSettings, base_cpu: Floats, *, whole: bool = True
) -> float | None:
    """No moves of whole bundles bring the busiest available broker below this usage (ratio); None without a broker.

    `base_cpu` is the base of all brokers: the bound holds if that is right. Unless bundles stay `whole`, the bound is
    the lower one that holds for plans that split them too.
    """
    brokers = state.brokers
    available = np.flatnonzero(brokers.available)
    if not len(available):
        return None
    needs, stays = _needs(state, base_cpu)
    stays = stays[available]
    bounds = [float(weighted_maximum(stays, brokers.limit[available], settings).max())]
    for resource in range(len(RESOURCES)):
        share = _share_of_one_unit(state, settings, resource)[available]
        if not (share > 0).all():
            continue  # a broker without a limit takes any amount
        fixed = stays[:, resource] * share
        bounds.append(level(fixed, share, float(needs[:, resource].sum())))
        if whole and len(needs):
            bounds.append(float((fixed + float(needs[:, resource].max()) * share).min()))
    return max(bounds)


@np.errstate(all="ignore")
def lowest_of_each(state: ClusterState, settings: LoadBalancerSettings, base_cpu: Floats) -> Floats:
    """(n,): no moves of bundles or their parts bring a broker below this usage (ratio), even without any bundle."""
    _, stays = _needs(state, base_cpu)
    return weighted_maximum(stays, state.brokers.limit, settings)


def _needs(state: ClusterState, base_cpu: Floats) -> tuple[Floats, Floats]:
    """(m, 5) and (n, 5): what the bundles of available brokers take along, and what stays on each broker."""
    brokers, bundles = state.brokers, state.bundles
    moving = np.flatnonzero(bundles.reported & (bundles.owner != NO_ROW) & brokers.available[bundles.owner])
    owner = bundles.owner[moving]
    needs = usage_that_moves(state, base_cpu, bundles.traffic[moving], owner)
    sums = np.column_stack([np.bincount(owner, weights=need, minlength=len(brokers)) for need in needs.T])
    return needs, np.nan_to_num(brokers.usage, posinf=0.0, neginf=0.0) - sums


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
