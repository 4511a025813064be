"""What holds for every shedder on any cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_advisor.model.cluster_state import ClusterState
from pulsar_advisor.model.decision import SheddingDecision
from pulsar_advisor.model.outcomes import Outcomes
from pulsar_advisor.model.settings import resolve_settings
from pulsar_advisor.shedding.cycle import steady_state
from pulsar_advisor.shedding.registry import load
from states import BrokerRow, BundleRow, cluster_state

NAMES = (
    "ThresholdShedder",
    "OverloadShedder",
    "UniformLoadShedder",
    "AvgShedder",
    "TransferShedder",
    "SimpleLoadManagerImpl",
)
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

figure = st.sampled_from([0.0, 1.0, 2.5, 1e3, 1e3, 5e6, 1e12, -1.0, float("nan"), float("inf")]) | st.floats(0, 1e9)
traffic = st.tuples(figure, figure, figure, figure)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterState:
    ids = [f"broker-{number}:8080" for number in range(draw(st.integers(1, 5)))]
    brokers = [BrokerRow(name, cpu=(draw(st.floats(0, 120)), 100.0), traffic=draw(traffic)) for name in ids]
    bundles = [
        BundleRow(
            f"t/n{number // 2}",
            text,
            draw(st.sampled_from([*ids, None])),
            draw(traffic),
            topics=draw(st.integers(0, 3)),
        )
        for number in range(draw(st.integers(0, 6)) * 2)
        for text in [("0x00000000_0x80000000", "0x80000000_0xffffffff")[number % 2]]
    ]
    return cluster_state(brokers, bundles)


def decide(name: str, release: str, state: ClusterState) -> SheddingDecision:
    of, shedder = resolve_settings(release, EAGER).values, load(name)
    view = shedder.observe(state, of, state.captured_at_ms)
    return steady_state(shedder, view, of, shedder.Memory()).decision


def rows(outcomes: Outcomes, *, chosen: bool) -> Sequence[int]:
    is_chosen = np.array([outcome.chosen for outcome in outcomes.vocabulary])[outcomes.code]
    return sorted(outcomes.index[is_chosen == chosen].tolist())


every_shedder = pytest.mark.parametrize("name", NAMES)


@every_shedder
@given(state=clusters(), release=st.sampled_from(RELEASES))
@settings(max_examples=60, deadline=None)
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
@settings(max_examples=40, deadline=None)
def test_bundles_leave_the_broker_that_owns_them(name: str, release: str, state: ClusterState) -> None:
    decision = decide(name, release, state)
    assert state.bundles.owner[decision.bundle].tolist() == decision.source.tolist()
    assert len(set(decision.bundle.tolist())) == len(decision.bundle)


@every_shedder
@given(state=clusters(), release=st.sampled_from(RELEASES))
@settings(max_examples=20, deadline=None)
def test_the_same_cluster_gets_the_same_answer(name: str, release: str, state: ClusterState) -> None:
    one, other = decide(name, release, state), decide(name, release, state)
    for first, second in ((one.bundles, other.bundles), (one.brokers, other.brokers)):
        assert first.code.tobytes() == second.code.tobytes()
        assert first.left.tobytes() == second.left.tobytes()
    assert one.bundle.tobytes() == other.bundle.tobytes()
