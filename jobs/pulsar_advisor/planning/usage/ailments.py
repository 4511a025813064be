"""What ails a cluster, whatever its balance: it comes before any advice, as no unload and no split cures it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.cluster.namespaces import is_pulsars_own
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.text.some_of import count, some_of
from pulsar_advisor.placement.filters import placement_facts, policy_candidates

_LATELY_MS: Final = 300_000
_MANY: Final = 5
"""Fewer bundles than that are an operator's few unloads."""


class Ailment(NamedTuple):
    """What ails a cluster."""

    sentence: str
    unsettles_rates: bool
    """Whether rates are also those of clients that come back, and catch up."""


def ailments(
    state: ClusterState, settings: LoadBalancerSettings, earlier: Sequence[ClusterState] = ()
) -> tuple[Ailment, ...]:
    """Gravest first. `earlier` are the fit parts of earlier states, oldest first."""
    return (
        *(Ailment(sentence, unsettles_rates=True) for sentence in _lost_brokers(state, earlier)),
        *(Ailment(sentence, unsettles_rates=False) for sentence in _placeless(state, settings)),
        *(Ailment(sentence, unsettles_rates=True) for sentence in _moved_by_others(state, settings, earlier)),
    )


def _lost_brokers(state: ClusterState, earlier: Sequence[ClusterState]) -> Iterator[str]:
    """The registered brokers without figures, if others have some, and those with fit figures in `earlier` states that
    are no longer registered, if any is.
    """
    brokers = state.brokers
    silent = [brokers.ids[row] for row in np.flatnonzero(brokers.available & ~brokers.reporting).tolist()]
    if silent and brokers.reporting.any():
        yield f"Registered but without figures, so down, unreachable or hanging: {some_of(silent)}."
    gone = _gone(state, earlier)
    for snapshot in sorted(set(gone.values()), reverse=True):
        of_it = {broker for broker, last in gone.items() if last == snapshot}
        yield f"Registered in snapshot {snapshot}, and no longer: {some_of(of_it)}."


def _gone(state: ClusterState, earlier: Sequence[ClusterState]) -> dict[str, str]:
    """The brokers that are no longer registered, each with the last snapshot in which it was; none if none is now."""
    registered = _registered(state)
    last = {broker: one.snapshot for one in earlier for broker in _registered(one)} if registered else {}
    return {broker: snapshot for broker, snapshot in last.items() if broker not in registered}


def _registered(state: ClusterState) -> set[str]:
    """The ids of the active brokers: a state also has those of which only a report is left."""
    return {state.brokers.ids[row] for row in np.flatnonzero(state.brokers.available).tolist()}


def _placeless(state: ClusterState, settings: LoadBalancerSettings) -> Iterator[str]:
    """The users' namespaces with bundles that have topics and no owner, and that no registered broker may serve."""
    nowhere = {name: number for name, number in _nowhere(state, settings).items() if number}
    if number := sum(nowhere.values()):
        yield (
            f"Isolation policies allow {some_of(nowhere)} on no registered broker: {count(number, 'bundle')} without "
            f"an owner can't be assigned, and clients can't reach {'its' if number == 1 else 'their'} topics. Correct "
            "the policy, or bring its brokers back."
        )


def unused(state: ClusterState, settings: LoadBalancerSettings) -> Iterator[str]:
    """The users' namespaces without topics that no registered broker may serve, which may be out of use."""
    if found := [name for name, number in _nowhere(state, settings).items() if not number]:
        yield (
            f"Isolation policies allow {some_of(found)} on no registered broker: no client can create topics there. "
            "Correct the policy, or bring its brokers back."
        )


def _nowhere(state: ClusterState, settings: LoadBalancerSettings) -> dict[str, int]:
    """The users' namespaces with bundles without an owner that no registered broker may serve, and how many of these
    bundles have topics.
    """
    of, unowned = state.bundles.namespace, state.bundles.owner == NO_ROW
    if not (state.isolation_policies and state.brokers.available.any() and unowned.any()):
        return {}
    facts, names = placement_facts(state, settings), state.namespaces.names
    with_topics = Counter(of[unowned & state.may_have_topics].tolist())
    return {
        names[row]: with_topics[row]
        for row in np.unique(of[unowned]).tolist()
        if not is_pulsars_own(names[row]) and not policy_candidates(facts, row).any()
    }


def _moved_by_others(
    state: ClusterState, settings: LoadBalancerSettings, earlier: Sequence[ClusterState]
) -> Iterator[str]:
    """That many of the users' bundles were unloaded lately, and not by the leader.

    Of a bundle that has another owner than in the snapshot before, it may only be known that it was unloaded since.
    """
    if not earlier or _gone(state, earlier):
        return
    before, now_ms = earlier[-1], state.captured_at_ms
    is_since_then = before.captured_at_ms >= now_ms - _LATELY_MS
    since_ms = before.captured_at_ms if is_since_then else now_ms - _LATELY_MS
    lately = {
        bundle
        for bundle, at_ms in state.users_unloads_at_ms.items()
        if at_ms > since_ms and (is_since_then or at_ms != now_ms)
    }
    owned = np.flatnonzero(before.bundles.owner != NO_ROW).tolist() if len(lately) >= _MANY else []
    number = sum(before.bundle_name(row) in lately for row in owned)  # a new bundle was assigned, not unloaded
    if settings.load_balancer_enabled and settings.load_balancer_shedding_enabled:
        if state.leader_unloads is None or before.leader_unloads is None or _leader(state) != _leader(before):
            return
        number -= state.leader_unloads - before.leader_unloads
    when = f"since snapshot {before.snapshot}" if is_since_then else "in the five minutes before this snapshot"
    if number >= _MANY:
        yield (
            f"{count(number, 'bundle')} were unloaded {when}, and not by Pulsar's own balancer but by a plan, a "
            "restart, a script or another tool. Unless you know which, find out before you apply a plan: owners and "
            "rates change meanwhile."
        )


def _leader(state: ClusterState) -> tuple[str, int] | None:
    """Who counts the unloads, and since when; it counts anew after a start."""
    if state.leader == NO_ROW:
        return None
    return state.brokers.ids[state.leader], int(state.brokers.started_at_ms[state.leader])
