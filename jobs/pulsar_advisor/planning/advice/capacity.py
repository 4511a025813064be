"""Whether moving bundles can relieve a cluster at all, or only more brokers can."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    DIRECT_MEMORY,
    MEMORY,
    RESOURCE_NAMES,
    ClusterState,
    Floats,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.resource_usage import ROUNDING_RATIO, deciding_resources, usage_ratios
from pulsar_advisor.model.text.some_of import points, some_of
from pulsar_advisor.placement.filters import placement_facts, policy_candidates
from pulsar_advisor.planning.advice.situation import Situation
from pulsar_advisor.planning.proposals.executable import is_movable, why_no_destination
from pulsar_advisor.planning.requests.what_if import NIC_SPEED
from pulsar_advisor.planning.usage.hot_topics import HotTopic


def only_more_brokers(usage: Floats, settings: LoadBalancerSettings) -> str | None:
    """A clause: why no move can relieve brokers with these usages (ratios); None where one might.

    A move needs a second broker, and one at or below `loadBalancerBrokerOverloadedThresholdPercentage`: a broker above
    it would only get worse. In any other case some move may help, also between brokers of different sizes.
    """
    known = usage[np.isfinite(usage)]
    threshold = settings.overloaded_ratio
    if not len(known):
        return None
    if len(usage) == 1:
        return f"there is one broker, at {known[0]:.1%}: no bundle can go anywhere"
    if len(known) < len(usage) or (known <= threshold).any():
        return None
    return f"all {len(usage)} brokers are above {threshold:.0%}, the least busy at {known.min():.1%}"


def unknown_network(state: ClusterState) -> str | None:
    """A sentence about the brokers with traffic that report no network speed; None without one."""
    brokers = state.brokers
    is_unknown = ~(brokers.limit[:, [BANDWIDTH_IN, BANDWIDTH_OUT]] > 0).all(axis=1)
    rows = np.flatnonzero(brokers.fit & is_unknown & (throughput_bytes_per_s(brokers.traffic) > 0)).tolist()
    if not rows:
        return None
    return (
        f"No network speed is known of {some_of([brokers.ids[row] for row in rows])}: to Pulsar, and in every figure "
        f"here, bandwidth is idle there, however much is sent. Set {NIC_SPEED}."
    )


def uneven_sentence(situation: Situation, excluded: Collection[str] = (), *, only_splits: bool = False) -> str | None:
    """What can be done about the busiest available broker if no strategy acts; None if the load is even.

    `only_splits`: or if all that is advised is to split bundles.

    It is uneven if that broker is overloaded, or above the mean by more than
    `loadBalancerBrokerThresholdShedderPercentage`, as Pulsar's default shedder up to 5.0 has it. Nothing can be done
    about a broker that the operator `excluded` (ids).
    """
    state, settings, lowest = situation.settled, situation.settings.values, situation.lowest
    rows = np.flatnonzero(state.brokers.available)
    usage = usage_ratios(state.brokers, settings)[rows]
    known = usage[np.isfinite(usage)]
    if not len(known):
        return None
    busiest = int(rows[np.nanargmax(usage)])
    broker, overloaded = state.brokers.ids[busiest], settings.overloaded_ratio
    above_mean = float(known.max() - known.mean())
    if known.max() > overloaded:
        if reason := only_more_brokers(usage, settings):
            return f"Only more brokers help: {reason}."
        goal, how = f"relieve {broker}", f"above the overload threshold of {overloaded:.0%}"
    elif above_mean * 100 > settings.load_balancer_broker_threshold_shedder_percentage:
        goal, how = "balance", f"{points(above_mean)} above the mean"
    else:
        return None
    deciding = int(deciding_resources(state.brokers, settings)[busiest])
    resource = RESOURCE_NAMES[deciding]
    is_above = f"{broker} is at {known.max():.1%} ({resource}), {how}"
    if deciding in (MEMORY, DIRECT_MEMORY):
        return f"{is_above}: no bundle takes {resource} along, so no move lowers it."
    if broker in excluded:
        return f"{is_above}, and is excluded by --exclude-broker."
    movable = [row for row in np.flatnonzero(state.bundles.owner == busiest).tolist() if is_movable(state, row)]
    if not movable:
        return f"{is_above}: none of its bundles can be moved."
    if state.isolation_policies and not _have_room_elsewhere(state, settings, movable, busiest):
        return (
            f"{is_above}: isolation policies leave its bundles no other broker with room. Relieve one that they allow, "
            "or allow another."
        )
    if why_no_destination(state, settings):  # so no goal can be planned for
        return f"{is_above}."
    lowest_seen = float(known.max()) - max(situation.noise.ratio, ROUNDING_RATIO)
    is_at_bound = False
    if lowest is not None and not _another_is_stuck(lowest.of_each[rows], lowest.of_each[busiest], lowest_seen):
        if lowest.by_parts >= lowest_seen:
            return f"{is_above}: no moves and no splits lower it by more than noise."
        is_at_bound = lowest.by_bundles >= lowest_seen
    names = frozenset(map(state.bundle_name, movable))
    of_it = (
        one
        for one in situation.hot
        if one.bundle in names
        and (only_splits or one.alone_ratio > overloaded or (is_at_bound and one.topics_of_bundle == 1))
    )
    if (hottest := next(of_it, None)) is not None:
        others = [one for one in situation.hot if one != hottest and one.alone_ratio > overloaded]
        return f"{is_above}, and no unload and no split divides {hottest.in_words}{_nor(others)}."
    if only_splits or is_at_bound:
        why = "no moves of whole bundles lower it by more than noise; " if is_at_bound else ""
        return f"{is_above}: {why}`split` looks for cuts whose parts move."
    return f"{is_above}: `{goal}` looks for moves that no strategy makes."


def _another_is_stuck(lowest_of_each: Floats, lowest_of_busiest: float, lowest_seen: float) -> bool:
    """Whether nothing lowers another broker than the busiest, which may itself fall though the highest usage stays."""
    return bool((lowest_of_each >= lowest_seen).any()) and lowest_of_busiest < lowest_seen


def _nor(others: Sequence[HotTopic]) -> str:
    """The other topics that overload any broker alone."""
    if len(others) > 1:
        return f", nor {len(others)} other topics above the threshold"
    return "".join(f", nor {one.in_words}" for one in others)


def _have_room_elsewhere(
    state: ClusterState, settings: LoadBalancerSettings, bundles: Sequence[int], owner: int
) -> bool:
    """Whether isolation policies allow any of these bundles on a broker that isn't overloaded, besides their owner."""
    facts = placement_facts(state, settings)
    others = ~(usage_ratios(state.brokers, settings) > settings.overloaded_ratio)
    others[owner] = False
    kinds = {(int(state.bundles.namespace[row]), bool(facts.non_persistent[row])) for row in bundles}
    return any(
        bool((policy_candidates(facts, namespace, non_persistent=non_persistent) & others).any())
        for namespace, non_persistent in kinds
    )
