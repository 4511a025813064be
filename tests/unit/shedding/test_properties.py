"""What holds for every shedder on any cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.model.strategy.outcomes import Outcomes
from pulsar_advisor.shedding.cycle import steady_state
from pulsar_advisor.shedding.registry import SHEDDERS, load
from states import cluster_state
from unit.any_cluster import coherent_rows, orderly, unruly
from unit.any_cluster import rows as rows_of
from unit.properties import examples

RELEASES = ("2.11.0", "3.0.7", "4.0.8", "4.2.4", "5.0.1")
EAGER = {
    "loadBalancerBrokerOverloadedThresholdPercentage": "50",
    "loadBalancerBrokerComfortLoadLevelPercentage": "50",
    "loadBalancerBundleUnloadMinThroughputThreshold": "0",
    "loadBalancerBrokerLoadTargetStd": "0.05",
    "minUnloadMessage": "0",
    "minUnloadMessageThroughput": "0",
    "maxUnloadPercentage": "0.5",
    "lowerBoundarySheddingEnabled": "true",
}


def clusters(figure: st.SearchStrategy[float] = unruly) -> st.SearchStrategy[ClusterState]:
    return (rows_of(figure) | coherent_rows()).map(lambda rows: cluster_state(*rows))


def decide(name: str, release: str, state: ClusterState) -> SheddingDecision:
    of, shedder = resolve_settings(release, EAGER).values, load(name)
    view = shedder.observe(state, of, state.captured_at_ms)
    try:
        return steady_state(shedder, view, of, shedder.Memory()).decision
    except DataNotFit as refusal:
        # The only other answer there may be: it says which row is unfit.
        assert any(broker in str(refusal) for broker in state.brokers.ids)
        reject()


def rows(outcomes: Outcomes, *, chosen: bool) -> Sequence[int]:
    is_chosen = outcomes.chosen()
    return sorted(outcomes.index[is_chosen == chosen].tolist())


def answered(outcomes: Outcomes, code: str) -> Sequence[int]:
    codes = [row for row, outcome in enumerate(outcomes.vocabulary) if outcome.code == code]
    found: list[int] = outcomes.index[np.isin(outcomes.code, codes)].tolist()
    return found


every_shedder = pytest.mark.parametrize("name", [shedder.name for shedder in SHEDDERS])


@every_shedder
@given(state=clusters(), release=st.sampled_from(RELEASES))
@examples(60)
def test_what_is_chosen_is_explained_as_chosen_and_nothing_else_is(
    name: str, release: str, state: ClusterState
) -> None:
    decision = decide(name, release, state)
    assert sorted(decision.bundle.tolist()) == rows(decision.bundles, chosen=True)
    assert not set(rows(decision.bundles, chosen=False)) & set(decision.bundle.tolist())
    for outcomes in (decision.brokers, decision.bundles):
        assert all(outcomes.explain(row) for row in range(len(outcomes)))


@every_shedder
@given(state=clusters(), release=st.sampled_from(RELEASES))
@examples(40)
def test_everything_looked_at_has_one_answer(name: str, release: str, state: ClusterState) -> None:
    decision = decide(name, release, state)
    for outcomes in (decision.brokers, decision.bundles):
        assert len(np.unique(outcomes.index)) == len(outcomes)


@every_shedder
@given(state=clusters(orderly), release=st.sampled_from(RELEASES))
@examples(40)
def test_what_is_chosen_reports_and_was_not_unloaded_within_the_grace_period(
    name: str, release: str, state: ClusterState
) -> None:
    decision = decide(name, release, state)
    assert state.bundles.reported[decision.bundle].all()
    grace_ms = resolve_settings(release).values.load_balancer_shedding_grace_period_minutes * 60_000
    # TransferShedder doesn't ask what it takes back in exchange.
    asked = np.setdiff1d(decision.bundle, answered(decision.bundles, "swapped_in"))
    assert (state.bundles.last_unloaded_at_ms[asked] < state.captured_at_ms - grace_ms).all()


@every_shedder
@given(state=clusters(), release=st.sampled_from(RELEASES))
@examples(40)
def test_bundles_leave_the_broker_that_owns_them(name: str, release: str, state: ClusterState) -> None:
    decision = decide(name, release, state)
    assert state.bundles.owner[decision.bundle].tolist() == decision.source.tolist()
    assert len(set(decision.bundle.tolist())) == len(decision.bundle)


@every_shedder
@given(state=clusters(), release=st.sampled_from(RELEASES))
@examples(20)
def test_the_same_cluster_gets_the_same_answer(name: str, release: str, state: ClusterState) -> None:
    one, other = decide(name, release, state), decide(name, release, state)
    for first, second in ((one.bundles, other.bundles), (one.brokers, other.brokers)):
        assert first.code.tobytes() == second.code.tobytes()
        assert first.left.tobytes() == second.left.tobytes()
        assert first.right.tobytes() == second.right.tobytes()
    assert one.bundle.tobytes() == other.bundle.tobytes()
