"""Strategies are asked about the fit part of a cluster, and not at all where an input they read is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings, resolve_settings
from pulsar_advisor.model.load.base_load import base_load
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.plans.propose import propose, propose_splits
from pulsar_advisor.planning.proposals.fitness import fit_part, split_refusals, unload_refusals
from pulsar_advisor.planning.proposals.proposal import Proposal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.forecast import Outlook, forecast
from pulsar_advisor.shedding.registry import SHEDDERS

A, B, C = 0, 1, 2
EAGER = resolve_settings(
    "4.0.8",
    what_if={
        "loadBalancerBrokerOverloadedThresholdPercentage": "50",
        "loadBalancerBrokerComfortLoadLevelPercentage": "60",
        "loadBalancerBrokerLoadTargetStd": "0.05",
        "loadBalancerSheddingConditionHitCountThreshold": "0",
        "maxUnloadPercentage": "0.5",
        "loadBalancerDistributeBundlesEvenlyEnabled": "false",
        "minUnloadMessage": "0",
        "minUnloadMessageThroughput": "0",
        "loadBalancerNamespaceBundleMaxMsgRate": "900",
    },
)
BY_TOPICS = resolve_settings(
    "4.0.8",
    what_if={
        "defaultNamespaceBundleSplitAlgorithm": "topic_count_equally_divide",
        "loadBalancerNamespaceBundleMaxMsgRate": "900",
    },
)

every_shedder = pytest.mark.parametrize("shedder", [entry.name for entry in SHEDDERS])
every_placement = pytest.mark.parametrize("placement", [entry.name for entry in PLACEMENTS])


def without(state: ClusterState, *brokers: int) -> ClusterState:
    """The fit part if these brokers fail."""
    complete = np.array([row not in brokers for row in range(len(state.brokers))])
    return fit_part(replace(state, brokers=replace(state.brokers, complete=complete)))


def ask(state: ClusterState, shedder: str, placement: str = "LeastLongTermMessageRate") -> Proposal:
    [(_, proposal)] = propose(Request(shedder=shedder, placement=placement), Situation.of_fit(state, EAGER))
    assert isinstance(proposal, Proposal), proposal
    return proposal


def split_bundles(state: ClusterState, settings: ResolvedSettings = EAGER) -> list[str]:
    proposal = propose_splits(Request(), Situation.of_fit(state, settings))
    return [] if proposal is None else [state.bundle_name(split.bundle) for split in proposal.splits]


def test_a_fit_cluster_stays_as_it_is(state: ClusterState) -> None:
    fit = fit_part(state)
    assert fit.brokers.available.all() and fit.missing == {}
    assert fit.bundles.reported.tolist() == state.bundles.reported.tolist()


@every_shedder
def test_a_broker_whose_figures_fail_gives_nothing(state: ClusterState, shedder: str) -> None:
    assert A in {move.source for move in ask(state, shedder).moves}
    assert A not in {move.source for move in ask(without(state, A), shedder).moves}


@every_shedder
@every_placement
def test_a_broker_whose_figures_fail_takes_nothing(state: ClusterState, shedder: str, placement: str) -> None:
    # b says it is idle, and would be everybody's first choice.
    assert B not in {move.destination for move in ask(without(state, B), shedder, placement).moves}


@every_shedder
def test_a_bundle_whose_figures_fail_is_not_picked(state: ClusterState, shedder: str) -> None:
    picked = ask(state, shedder).moves[0].bundle
    state.bundles.usable[picked] = False
    assert picked not in {move.bundle for move in ask(fit_part(state), shedder).moves}


def test_a_bundle_whose_figures_fail_is_not_split(state: ClusterState) -> None:
    assert split_bundles(state) == [state.bundle_name(0)]
    state.bundles.usable[0] = False
    assert split_bundles(fit_part(state)) == []


def test_a_figure_that_fails_moves_no_mean(state: ClusterState, settings: ResolvedSettings) -> None:
    state.brokers.usage[B] = np.nan
    fit = without(state, B)
    spread = forecast(fit, Outlook.of(fit, base_load(fit)), settings.values)
    assert (spread.maximum_ratio, spread.mean_ratio) == (0.9, 0.55)


@every_shedder
@every_placement
def test_without_isolation_policies_no_destination_is_known_to_be_allowed(
    state: ClusterState, shedder: str, placement: str
) -> None:
    lacking = replace(state, missing={"isolation_policies": "isolation_policies: 500"})
    proposal = ask(lacking, shedder, placement)
    assert proposal.moves == ()
    assert proposal.why_nothing == (
        f"{shedder} can't be judged: it reads isolation_policies, which is missing (isolation_policies: 500)."
    )
    assert len(split_bundles(lacking)) == 1


def test_without_topic_names_only_the_algorithms_that_read_them_are_refused(state: ClusterState) -> None:
    lacking = replace(state, missing={"topic_names": "topic_names: 403"})
    assert split_refusals(lacking, resolve_settings("4.0.8").values) == ()
    [refusal] = split_refusals(lacking, BY_TOPICS.values)
    assert (refusal.strategy, refusal.role, refusal.missing) == (
        "topic_count_equally_divide",
        "splitting",
        "topic_names",
    )
    request = Request(shedder="ThresholdShedder", placement="LeastLongTermMessageRate")
    [(_, proposal)] = propose(request, Situation.of_fit(lacking, BY_TOPICS))
    assert isinstance(proposal, Proposal)
    assert proposal.moves and split_bundles(lacking, BY_TOPICS) == []


def test_without_the_topic_names_of_one_namespace_only_its_bundles_are_not_split(state: ClusterState) -> None:
    def splits(*unlisted: str) -> list[str]:
        lacking = replace(state, unlisted_namespaces=frozenset(unlisted))
        assert split_refusals(lacking, BY_TOPICS.values) == ()
        return split_bundles(lacking, BY_TOPICS)

    assert splits("t/idle") == ["t/hot/0x00000000_0x40000000"]
    assert splits("t/hot") == []


def test_where_no_broker_is_fit_unloads_are_refused_by_name(state: ClusterState) -> None:
    absent = without(state, A, B, C)
    refused = {(refusal.missing, refusal.reason) for refusal in unload_refusals(SHEDDERS[0], "shedder", absent)}
    assert ("broker_usage", "no active broker has a fit report") in refused
    assert ("bundle_traffic", "no bundle has fit figures") in refused


def test_what_has_a_substitute_is_not_refused(state: ClusterState) -> None:
    lacking = replace(state, missing={"settings": "401", "failure_domains": "500"})
    assert unload_refusals(SHEDDERS[0], "shedder", lacking) == ()


def test_a_broker_above_its_limit_sheds_as_pulsar_would_have_it(state: ClusterState) -> None:
    usage = state.brokers.usage.copy()
    usage[A] *= 124 / 90  # to 124 % of the limit
    doubtful = np.array([True, False, False])
    above = replace(state, brokers=replace(state.brokers, usage=usage, doubtful=doubtful))
    moves = ask(fit_part(above), "AvgShedder", "AvgShedder").moves
    assert {(move.source, move.destination) for move in moves} == {(A, B)}
