"""Which proposed unloads and splits may become calls: the rules of `apply` that are known when the plan is made.

What they exclude stays in the plan, marked, because Pulsar itself would carry it out.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState
from pulsar_advisor.model.cluster.namespaces import has_three_parts, is_pulsars_own
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.proposals.proposal import Move
from pulsar_advisor.planning.usage.scalable_topics import awaited_split
from pulsar_advisor.splitting.limits import LEAST_TOPICS

_DESTINATIONS_SINCE: Final = (3, 0, 0)
SPECIFIED_POSITIONS: Final = "specified_positions_divide"
"""The algorithm by which a split's boundaries are named."""


def why_no_destination(state: ClusterState, settings: LoadBalancerSettings) -> str | None:
    """A sentence: why the cluster doesn't keep the destination of an unloaded bundle; None if it does."""
    if state.load_manager != "simple" and settings.behaviour >= _DESTINATIONS_SINCE:
        return None
    who = "the Simple load manager" if state.load_manager == "simple" else f"Pulsar {state.pulsar_version}"
    return f"{who} doesn't keep the destination of an unload."


def _why_bundle_not(state: ClusterState, bundle: int) -> str | None:
    namespace = state.namespace_of(bundle)
    owner = int(state.bundles.owner[bundle])
    if is_pulsars_own(namespace):
        return f"{namespace} is one of Pulsar's own namespaces"
    if has_three_parts(namespace):
        return f"the name of {namespace} has three parts: the admin API that `apply` uses knows no such namespace"
    if owner == NO_ROW:
        return "the bundle has no owner"
    if not state.bundles.in_boundaries[bundle]:
        return "the range is not among the namespace's boundaries: a split is in progress"
    if not state.bundles.usable[bundle]:
        return "validation found the figures of this bundle unfit"
    if not state.brokers.complete[owner]:
        return f"the figures of its owner {state.brokers.ids[owner]} are incomplete or unfit"
    if not state.brokers.available[owner]:
        return f"its owner {state.brokers.ids[owner]} is not an active broker"
    return None


def why_move_not(state: ClusterState, move: Move) -> str | None:
    """Why an unload can't be carried out; None if it can."""
    reason = _why_bundle_not(state, move.bundle)
    if reason is None and state.bundles.topics[move.bundle] == 0:
        return "no topic of the bundle is loaded: no client would bring it back, and nothing would move"
    if reason is None and move.destination != NO_ROW and not state.brokers.complete[move.destination]:
        return f"the figures of the destination {state.brokers.ids[move.destination]} are incomplete or unfit"
    if reason is None and move.destination != NO_ROW:
        return _why_topics_not(state, move.bundle, move.destination)
    return reason


def is_movable(state: ClusterState, bundle: int) -> bool:
    """Whether a bundle (a row) can be unloaded at all, wherever it then goes."""
    source = int(state.bundles.owner[bundle])
    return why_move_not(state, Move(bundle, source, NO_ROW, reason="", near_tie=False)) is None


def _why_topics_not(state: ClusterState, bundle: int, broker: int) -> str | None:
    """Why a broker can't serve the topics of a bundle (rows), by their kinds; None if it can."""
    brokers = state.brokers
    for kind, holds, served in (
        ("persistent", state.holds_persistent, brokers.persistent_topics_enabled),
        ("non-persistent", state.holds_non_persistent, brokers.non_persistent_topics_enabled),
    ):
        if holds[bundle] and not served[broker]:
            return f"{brokers.ids[broker]} doesn't serve its {kind} topics"
    return None


def why_never_split(state: ClusterState, settings: LoadBalancerSettings, bundle: int) -> str | None:
    """Why a bundle can't be split at any position; None if it can.

    `apply` names the positions, so brokers have to accept that algorithm.
    Source: `NamespacesBase.internalSplitNamespaceBundleAsync`.
    """
    if SPECIFIED_POSITIONS not in settings.supported_namespace_bundle_split_algorithms:
        return f"supportedNamespaceBundleSplitAlgorithms lacks {SPECIFIED_POSITIONS}, so brokers refuse positions"
    topics = np.flatnonzero(state.topics.bundle == bundle)
    listed = int(state.topics.is_listed[topics].sum())
    if listed >= LEAST_TOPICS:
        return None
    if len(topics) == listed:
        return f"a bundle of {count(listed, 'topic')} is never split"
    return (
        f"Pulsar splits no bundle of fewer than {LEAST_TOPICS} topics, and counts only {listed} of the {len(topics)} "
        "here: it doesn't list segments of scalable topics"
    )


def why_split_not(state: ClusterState, settings: LoadBalancerSettings, split: Split) -> str | None:
    """Why a split can't be carried out; None if it can."""
    if not split.boundaries:
        return f"{split.algorithm} finds no boundary inside the bundle"
    if (reason := why_never_split(state, settings, split.bundle)) is not None:
        return reason
    if state.load_manager == "extensible" and len(split.boundaries) != 1:
        return f"the Extensible manager only splits in two; {split.algorithm} gives {len(split.boundaries)} boundaries"
    return _why_bundle_not(state, split.bundle) or awaited_split(state, settings, split.bundle)
