"""Turns a proposal into a plan: its steps, its forecast, and what both rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import CPU, ClusterState, Floats
from pulsar_advisor.model.cluster.inputs import EVERY_STEP_READS
from pulsar_advisor.model.load.base_load import BaseLoad
from pulsar_advisor.model.plans.plan import Identity, Plan, PlanDecision, PlanInputs, PlannedBase, Prediction
from pulsar_advisor.model.strategy.decision import Figure
from pulsar_advisor.planning.plans.confidence import Grading, StepCheck
from pulsar_advisor.planning.plans.deciding import deciding
from pulsar_advisor.planning.plans.own_balancer import would_pulsar_act
from pulsar_advisor.planning.plans.planned_settings import planned_settings, setting_keys
from pulsar_advisor.planning.plans.steps import Steps
from pulsar_advisor.planning.proposals.fitness import EVERY_UNLOAD_READS, splitting
from pulsar_advisor.planning.proposals.limits import Budgets, left_out_clause, splits_within, unloads_within
from pulsar_advisor.planning.proposals.proposal import Proposal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.forecast import finite, forecast
from pulsar_advisor.splitting.auto_scale_policy_evaluator import SETTING_KEYS as CONTROLLER_KEYS


def build_plan(
    situation: Situation, proposal: Proposal, request: Request, inputs: PlanInputs, checks: Sequence[StepCheck] = ()
) -> Plan:
    """The plan of one proposal; `checks` are the validation results that the steps rest on."""
    state, settings = situation.fit, situation.settings
    strategies = deciding(proposal.shedder, proposal.placement)
    decider, algorithm = splitting(state, settings.values)
    unloads = Grading(
        state,
        checks,
        EVERY_UNLOAD_READS.union(*(strategy.reads for strategy in strategies)),
        derived=proposal.shedder if state.load_manager not in strategies[0].load_managers else "",
    )
    splits = Grading(state, checks, EVERY_STEP_READS | decider.reads | algorithm.reads)
    steps = Steps(situation, unloads, splits)
    left_out = _add_within_limits(steps, proposal, request)
    sentences = tuple(f"{clause[0].upper()}{clause[1:]}." for clause in left_out)
    acts = any(step.executable for step in steps.steps)
    # A kind says in a clause why it does nothing, a shedder in a sentence.
    why_limited = "; ".join(left_out) if request.goal else " ".join(sentences)
    keys = setting_keys(proposal.shedder, proposal.placement, request)
    return Plan(
        schema_name=Plan.SCHEMA,
        cluster=state.cluster,
        identity=Identity(cluster_name=state.cluster_name, broker_ids=state.brokers.ids),
        snapshot=state.snapshot,
        inputs=inputs,
        pulsar_version=str(state.pulsar_version),  # without one, no settings could be resolved
        load_manager=state.load_manager,
        view=state.view,
        shedder=proposal.shedder,
        placement=proposal.placement,
        settings=planned_settings(settings, keys.union(CONTROLLER_KEYS if state.topics.segments else ())),
        limits=request.limits.as_mapping(),
        seed=request.seed,
        memory={"snapshots": [moment.snapshot for moment in situation.earlier], **_samples(state)},
        steps=tuple(steps.steps),
        predicted=Prediction(
            model="base_load",
            before=forecast(state, steps.origin, settings.values),
            after=forecast(state, steps.outlook, settings.values, situation.noise.ratio),
            base=_planned_base(state, situation.base),
        ),
        decision=PlanDecision(
            figures=_plain_figures(proposal.figures),
            acts_in_cycle=proposal.acts_in_cycle,
            why_nothing=why_limited if left_out and not acts else proposal.why_nothing,
            caveats=(*proposal.caveats, *(sentences if acts else ())),
            would_pulsar_act=would_pulsar_act(
                settings, state.load_manager, proposal.shedder, bool(proposal.moves), bool(proposal.splits)
            ),
        ),
        rests_on={"unload": unloads.rests_on, "split": splits.rests_on},
        goal=request.goal,
    )


def _add_within_limits(steps: Steps, proposal: Proposal, request: Request) -> list[str]:
    """Add what the limits leave of a proposal; a clause each about the unloads and splits that they leave out.

    Unloads come first: they are reversible, and a split removes its bundle. The unloads of a split's children follow
    it, if they are requested. The default number of splits isn't mentioned: the next plan has the splits that follow.
    """
    budgets = Budgets(request.limits)
    moves, unloads = unloads_within(proposal.moves, steps.state, budgets)
    kept, splits = splits_within(proposal.splits, steps.state, request.limits)
    steps.unload(moves)
    for split in kept:
        steps.split(split)
        if request.unload_children or split.destinations:
            unloads += steps.unload_children(split, request, proposal.placement, budgets)
    if not request.limits.are_given:
        return []
    whose = "" if request.goal else f"{proposal.shedder}'s "
    clauses = []
    if unloads:
        proposed = unloads.total() + sum(step.action == "unload" for step in steps.steps)
        clauses.append(left_out_clause(unloads, proposed, "unload", whose))
    if splits:
        clauses.append(left_out_clause(splits, len(proposal.splits), "split", whose))
    return clauses


def _plain_figures(figures: Mapping[str, Figure]) -> dict[str, int | float | str | None]:
    """The figures that are a single number or flag; a shedder's figures per broker are in its outcomes."""
    plain: dict[str, int | float | str | None] = {}
    for name, value in figures.items():
        if isinstance(value, bool):
            plain[name] = str(value).lower()
        elif isinstance(value, int | np.integer):
            plain[name] = int(value)
        elif isinstance(value, float | np.floating):
            plain[name] = finite(float(value))
    return plain


def _samples(state: ClusterState) -> dict[str, int]:
    """The most samples that any bundle's stored averages gained, by name; nothing where none did."""
    most = {
        "folded_samples": int(state.bundles.folded_samples.max(initial=0)),
        "unknown_samples": int(state.bundles.unknown_samples.max(initial=0)),
    }
    return most if any(most.values()) else {}


def _planned_base(state: ClusterState, base: BaseLoad) -> dict[str, PlannedBase]:
    limit = state.brokers.limit[:, CPU]

    def ratio(cpu: Floats, broker: int) -> float | None:
        return finite(float(cpu[broker]) / float(limit[broker])) if limit[broker] > 0 else None

    return {
        name: PlannedBase(
            lowest_ratio=ratio(base.least, broker),
            ratio=ratio(base.likely, broker),
            highest_ratio=ratio(base.greatest, broker),
            origin=base.origin[broker],
        )
        for broker, name in enumerate(state.brokers.ids)
    }
