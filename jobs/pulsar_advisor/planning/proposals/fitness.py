"""The part of a cluster that strategies judge, and what can't be judged because an input is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, Booleans, ClusterState
from pulsar_advisor.model.cluster.inputs import EVERY_STEP_READS, INPUTS, Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.entry import Strategy
from pulsar_advisor.planning.proposals.proposal import Role
from pulsar_advisor.splitting.registry import algorithm_in_force, decider_of

EVERY_UNLOAD_READS: Final[frozenset[Input]] = EVERY_STEP_READS | {
    "broker_counts",
    "isolation_policies",
    "anti_affinity",
    "failure_domains",
    "broker_usage",
    "broker_traffic",
    "bundle_traffic",
}
"""Inputs besides those of shedder and placement strategy: for the filters of the load manager, and the prediction."""


def judged_bundles(state: ClusterState) -> Booleans:
    """Per bundle, whether its figures and those of its owner are fit for use."""
    owner = state.bundles.owner
    judged: Booleans = state.bundles.usable & ((owner == NO_ROW) | state.brokers.complete[owner])
    return judged


def fit_part(state: ClusterState) -> ClusterState:
    """The state without what validation found unfit: the input of strategies and forecasts.

    A broker whose figures are incomplete or unfit counts as not registered and not reporting: it gives and takes
    nothing, and no mean includes it. Its bundles, and other unfit ones, count as not reported; they keep their owner.
    Inputs of which nothing is left are missing.
    """
    brokers, bundles = state.brokers, state.bundles
    available, reported = brokers.available & brokers.complete, bundles.reported & judged_bundles(state)
    return replace(
        state,
        brokers=replace(
            brokers,
            available=available,
            report_updated_at_ms=np.where(brokers.complete, brokers.report_updated_at_ms, 0),
        ),
        bundles=replace(bundles, reported=reported),
        missing={**_all_unfit(state, reported), **state.missing},
    )


def _all_unfit(state: ClusterState, reported: Booleans) -> Mapping[Input, str]:
    missing: dict[Input, str] = {}
    none_reports = not state.brokers.fit.any()
    if none_reports:
        missing["broker_usage"] = missing["broker_traffic"] = "no active broker has a fit report"
    if (none_reports or state.bundles.reported.any()) and not reported.any():
        missing["bundle_traffic"] = missing["bundle_counts"] = "no bundle has fit figures"
    return missing


@dataclass(frozen=True)
class Refusal:
    """A strategy that can't judge a cluster, and the input it lacks."""

    strategy: str
    role: str
    missing: str
    reason: str
    """Why the input is missing."""
    sentence: str
    """The refusal in words."""


def refusals(strategy: str, role: Role, reads: frozenset[Input], state: ClusterState) -> tuple[Refusal, ...]:
    """Every missing input that a strategy reads and that has no substitute, in the order of `INPUTS`."""
    lacking = ((name, state.missing[name]) for name in INPUTS if name in reads and name in state.missing)
    return tuple(
        Refusal(
            strategy, role, name, reason, f"{strategy} can't be judged: it reads {name}, which is missing ({reason})."
        )
        for name, reason in lacking
        if INPUTS[name].substitute is None
    )


def unload_refusals(strategy: Strategy, role: Role, state: ClusterState) -> tuple[Refusal, ...]:
    """Missing inputs of a shedder or placement strategy."""
    return refusals(strategy.name, role, EVERY_UNLOAD_READS | strategy.reads, state)


def splitting(state: ClusterState, settings: LoadBalancerSettings) -> tuple[Strategy, Strategy]:
    """The cluster's split decider, and the algorithm its brokers use for automatic splits."""
    return decider_of(state.load_manager), algorithm_in_force(settings)


def split_refusals(state: ClusterState, settings: LoadBalancerSettings) -> tuple[Refusal, ...]:
    """Missing inputs of the split decider or the algorithm."""
    wanted: Sequence[Strategy] = splitting(state, settings)
    return tuple(
        refusal
        for strategy in wanted
        for refusal in refusals(strategy.name, "splitting", EVERY_STEP_READS | strategy.reads, state)
    )
