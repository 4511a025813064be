"""What holds for the plan of every shedder on any cluster."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.load.resource_usage import usage_ratios
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of, dump_plan
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.plans.build_plan import build_plan
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.shedding.registry import SHEDDERS
from states import BrokerRow, BundleRow, cluster_state, without_base
from unit.any_cluster import Rows, coherent_rows, orderly, rows
from unit.planning.made_plans import INPUTS
from unit.properties import examples

EAGER = {
    "loadBalancerBrokerOverloadedThresholdPercentage": "50",
    "loadBalancerBrokerComfortLoadLevelPercentage": "50",
    "loadBalancerBundleUnloadMinThroughputThreshold": "0",
    "loadBalancerBrokerLoadTargetStd": "0.05",
    "loadBalancerSheddingConditionHitCountThreshold": "0",
    "minUnloadMessage": "0",
    "minUnloadMessageThroughput": "0",
    "maxUnloadPercentage": "0.5",
    "lowerBoundarySheddingEnabled": "true",
}
SETTINGS = resolve_settings("4.0.8", what_if=EAGER)
NAMES = tuple(shedder.name for shedder in SHEDDERS)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
"""Figures that are infinite or no number are what some clusters report: nothing to warn an operator about."""

every_shedder = pytest.mark.parametrize("shedder", NAMES)
placement = st.sampled_from([entry.name for entry in PLACEMENTS])


def plan_of(shedder: str, placement: str, state: ClusterState) -> Plan:
    """The plan of one combination; an example that it refuses in words is none."""
    request = Request(shedder=shedder, placement=placement, seed=7)
    try:
        [(_, proposal)] = propose(request, Situation.of_fit(state, SETTINGS))
        if isinstance(proposal, AdvisorError):
            raise proposal
        return build_plan(Situation.of_fit(state, SETTINGS), proposal, request, INPUTS)
    except AdvisorError as refusal:
        assert str(refusal)
        reject()


def shuffled(brokers: Sequence[BrokerRow], bundles: Sequence[BundleRow], seed: int) -> ClusterState:
    draw = random.Random(seed)
    return cluster_state(draw.sample(brokers, len(brokers)), draw.sample(bundles, len(bundles)))


@every_shedder
@given(of=rows() | coherent_rows(), placement=placement)
@examples(40)
def test_the_same_input_in_any_order_of_rows_gives_the_same_bytes(shedder: str, of: Rows, placement: str) -> None:
    brokers, bundles = of
    first = dump_plan(plan_of(shedder, placement, cluster_state(brokers, bundles)))
    assert dump_plan(plan_of(shedder, placement, shuffled(brokers, bundles, seed=1))) == first


@every_shedder
@given(of=rows() | coherent_rows(), placement=placement)
@examples(40)
def test_a_plan_of_any_figures_has_a_digest_and_only_steps_the_cluster_could_take(
    shedder: str, of: Rows, placement: str
) -> None:
    state = cluster_state(*of)
    plan = plan_of(shedder, placement, state)
    assert digest_of(plan).startswith("sha256:")
    bundles = {state.bundle_name(row): row for row in range(len(state.bundles))}
    moved = set()
    for step in plan.steps:
        row = bundles[step.bundle_name]
        if step.action != "unload":
            continue
        assert row not in moved
        moved.add(row)
        assert step.destination != step.source == state.brokers.ids[state.bundles.owner[row]]
        if step.destination is not None:
            assert state.brokers.available[state.brokers.ids.index(step.destination)]
        if step.executable:
            assert state.bundles.usable[row] and state.bundles.in_boundaries[row] and state.bundles.topics[row] > 0


@given(of=rows() | coherent_rows(), placement=placement)
@examples(100)
def test_every_unload_of_the_strategy_of_ours_can_be_carried_out(of: Rows, placement: str) -> None:
    plan = plan_of("MinimalMoveShedder", placement, cluster_state(*of))
    assert [step.not_executable_because for step in plan.steps if step.action == "unload" and not step.executable] == []


@every_shedder
@given(of=rows(orderly) | coherent_rows(), placement=placement)
@examples(40)
def test_a_forecast_loses_no_message_no_byte_and_no_bundle(shedder: str, of: Rows, placement: str) -> None:
    predicted = plan_of(shedder, placement, cluster_state(*of)).predicted
    before, after = predicted.before.brokers.values(), predicted.after.brokers.values()
    largest = max((bundle.traffic[column] for bundle in of[1] for column in range(4)), default=0.0)
    tolerance = 1e-9 * max(1.0, largest, *(broker.throughput_bytes_per_s or 0.0 for broker in before))
    for figure in ("msg_rate_per_s", "throughput_bytes_per_s", "bundles"):
        sums = [math.fsum(getattr(broker, figure) for broker in side) for side in (before, after)]
        assert sums[0] == pytest.approx(sums[1], rel=1e-9, abs=tolerance)


@given(of=coherent_rows())
@examples(60)
def test_the_strategy_of_ours_lifts_nobody_above_the_busiest_it_found(of: Rows) -> None:
    state = cluster_state(*of)
    request = Request(shedder="MinimalMoveShedder", placement="LeastLongTermMessageRate", splits=False, seed=7)
    try:
        [(_, proposal)] = propose(request, Situation.of_fit(state, SETTINGS))
    except AdvisorError:
        reject()
    assert not isinstance(proposal, AdvisorError)
    outlook = without_base(state)
    moves = [(move.bundle, move.source, move.destination) for move in proposal.moves]
    after, _ = outlook.along(outlook, state.bundles, moves, SETTINGS.values)
    origin, loads = outlook.likely, after.likely
    fit = state.brokers.available & state.brokers.complete
    if fit.any():
        busiest = usage_ratios(origin, SETTINGS.values)[fit].max()
        # Loads are parts per million, and Pulsar's percentages are binary32.
        assert usage_ratios(loads, SETTINGS.values)[fit].max() <= busiest * (1 + 1e-5) + 1e-5
