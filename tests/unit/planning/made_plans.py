"""Plans of moves and splits that a test writes down, in the place of a shedder and a split decider."""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.plans.plan import Plan, PlanInputs
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.plans.build_plan import build_plan
from pulsar_advisor.planning.plans.confidence import StepCheck
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.proposals.proposal import Move, Proposal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation

INPUTS = PlanInputs(manifest_sha256="0" * 64, validation_sha256="1" * 64)
NO_LIMITS = Limits()


def plan_of(
    state: ClusterState,
    settings: ResolvedSettings,
    moves: tuple[Move, ...] = (),
    splits: tuple[Split, ...] = (),
    *,
    shedder: str = "ThresholdShedder",
    limits: Limits = NO_LIMITS,
    unload_children: bool = False,
    checks: Sequence[StepCheck] = (),
    earlier: Sequence[ClusterState] = (),
) -> Plan:
    """The plan of these moves and splits, as if a shedder and a decider had chosen them."""
    proposal = Proposal(shedder, "LeastLongTermMessageRate", moves, splits, (), 1, None)
    request = Request(limits=limits, unload_children=unload_children)
    return build_plan(Situation.of(state, settings, earlier), proposal, request, INPUTS, checks)
