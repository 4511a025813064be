"""The recommendation: what was computed, judged and put into words, as the document that `recommend` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from pulsar_advisor.documents.recommendation import Advice, Combination, Foresight, Recommendation
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import ResolvedSettings
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.plans.plan import Plan, PlanInputs
from pulsar_advisor.model.strategy.entry import combination
from pulsar_advisor.planning.advice.compare import Score, advise, dominating, is_worthwhile, ranked_by_effect, score
from pulsar_advisor.planning.advice.coverage import Coverage, coverage
from pulsar_advisor.planning.advice.findings import Finding, findings
from pulsar_advisor.planning.advice.goal_sentence import goal_sentence
from pulsar_advisor.planning.advice.headline import (
    advised_sentence,
    highest_on_the_way,
    none_judged,
    unadvised_sentence,
    unjudged_sentence,
)
from pulsar_advisor.planning.advice.options import Option, ranked_options
from pulsar_advisor.planning.advice.uneven import uneven
from pulsar_advisor.planning.advice.vain_splits import only_splits_in_vain
from pulsar_advisor.planning.advice.verbs import Verbs
from pulsar_advisor.planning.kinds.goal import resolved_goal
from pulsar_advisor.planning.kinds.goal_outcome import GoalOutcome, foretold_outcome
from pulsar_advisor.planning.plans.deciding import deciding
from pulsar_advisor.planning.plans.planned_settings import planned_settings, setting_keys
from pulsar_advisor.planning.proposals.executable import why_no_destination
from pulsar_advisor.planning.proposals.fitness import Refusal, split_refusals, unload_refusals
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.model_errors import model_errors
from pulsar_advisor.recommendation.endings import balancing, by_itself
from pulsar_advisor.recommendation.left_alone import LeftAlone
from pulsar_advisor.recommendation.shedder_answers import ShedderAnswers
from pulsar_advisor.splitting.registry import decider_of

_NO_INPUTS: Final = PlanInputs(manifest_sha256="", validation_sha256="")
"""Of a plan that is neither written nor approved."""

PlanIn = Callable[[str], Plan]
"""The plan in one of the files that scores name. It may read it: a plan of a large cluster takes many megabytes."""


def recommendation(
    alone: LeftAlone, scores: Sequence[Score], request: Request, plan_in: PlanIn, manifest_sha256: str
) -> Recommendation:
    """The recommendation for a request's plans, given what becomes of the cluster without one."""
    situation, floor_ratio = alone.situation, alone.situation.noise.ratio
    state, fit, settings, ails = situation.state, situation.fit, situation.settings, situation.ailments
    planned = [row for row in scores if row.plan is not None]
    by_own, verbs = alone.foresight(None), _verbs(alone, request)
    refused = _refusals(fit, settings, request)
    judged = coverage(state, settings.values, alone.published, alone.set_aside_by)
    is_judged = not none_judged(scores, refused)
    chosen = _chosen(alone, scores, request, plan_in, by_own, verbs, is_judged=is_judged and not judged.decides)
    advised = chosen.advised
    advised_plan = plan_in(advised.plan) if advised is not None and advised.plan is not None else None
    of_goal = plan_in(str(planned[0].plan)) if request.goal is not None and planned else None
    # A roll keeps the balancer off until its last turn, and its plan is the first one.
    is_roll = advised_plan is not None and advised_plan.shedder == ROLL
    foresight = by_own if is_roll or advised_plan is None else alone.foresight(advised_plan)
    said_first = [ailment.sentence for ailment in ails[:1] if request.goal is None]
    found = _findings(alone, planned, advised, plan_in, judged, verbs)
    if of_goal is not None:
        sentence = goal_sentence(of_goal, floor_ratio)
    elif advised_plan is not None:
        sentence = advised_sentence(advised_plan, by_itself(foresight), floor_ratio, chosen.about_busiest)
    elif not is_judged:
        sentence = unjudged_sentence(scores, refused)
    else:
        sentence = unadvised_sentence(
            situation,
            scores,
            by_itself(foresight),
            chosen.about_busiest,
            limited=request.limits.are_given,
            overloading=chosen.overloading,
            warned=any(one.severity == "warning" and one.sentence not in said_first for one in found),
        )
    ranked = ranked_by_effect(planned, situation.configured, floor_ratio)
    keys = frozenset[str]().union(*(setting_keys(row.shedder, row.placement, request) for row in planned))
    return Recommendation(
        cluster=state.cluster,
        snapshot=state.snapshot,
        manifest_sha256=manifest_sha256,
        proposer=request.proposer,
        view=state.view,
        combinations=tuple(
            Combination(**asdict(row), dominated_by=_dominated_by(row, ranked, floor_ratio)) for row in scores
        ),
        advice=Advice(
            plan=advised.plan if advised else None,
            digest=advised.digest if advised else None,
            sentence=" ".join((*said_first, judged.headline(sentence, claims_enough=advised is None and is_judged))),
        ),
        goal_outcome=_goal_outcome(request, of_goal),
        findings=found,
        coverage=judged,
        refusals=refused,
        notes=tuple(settings.notes),
        foresight=foresight,
        noise_floor=situation.noise,
        model_errors=model_errors([*situation.earlier, fit]),
        lowest_maximum_ratio=None if situation.lowest is None else situation.lowest.by_bundles,
        trials=alone.tried,
        options=chosen.options,
        settings=planned_settings(settings, keys),
    )


def _goal_outcome(request: Request, plan: Plan | None) -> GoalOutcome | None:
    if request.goal is None:
        return None
    return "missed" if plan is None else foretold_outcome(plan)


class _Choice(NamedTuple):
    """What is advised, and why not something else."""

    advised: Score | None
    options: tuple[Option, ...] = ()
    overloading: str = ""
    """Which broker a worthwhile plan overloads on the way, so that it isn't advised, and how far."""
    about_busiest: str | None = None
    """What can be done about a broker that is too busy; None if none is, or unloads are advised."""


def _chosen(
    alone: LeftAlone,
    scores: Sequence[Score],
    request: Request,
    plan_in: PlanIn,
    foresight: Foresight,
    verbs: Verbs,
    *,
    is_judged: bool,
) -> _Choice:
    """For a goal, the first plan that has steps. Else the best one, unless it only splits and the first option is to
    wait: Pulsar's own balancer makes its splits, and goes on. Where it has no unloads, what a verb finds is an option.
    Where nothing is advised because too little could be judged, nothing is an option.
    """
    if request.goal is not None:
        return _Choice(next((row for row in scores if row.steps), None))
    situation, floor_ratio = alone.situation, alone.situation.noise.ratio
    overloading = _overloading(scores, plan_in, floor_ratio)
    offered = [row for row in scores if not (row.plan in overloading or _splits_in_vain(row, situation, plan_in))]
    by_pulsar = balancing(foresight, alone.tried, situation.settings.release)
    options_with = partial(ranked_options, situation, offered, by_pulsar, limited=request.limits.are_given)
    options = options_with()
    best = advise(offered, situation.configured, floor_ratio)
    waits = bool(options) and options[0].kind == "own_balancer"
    advised = None if best is not None and not best.unloads and waits else best
    if advised is None and not is_judged:
        return _Choice(None)
    overloads = next(iter(overloading.values()), "")
    if advised is not None and advised.unloads:
        return _Choice(advised, options, overloads)
    found = uneven(situation, verbs, request.limits.exclude_brokers)
    if found is not None and found.plan is not None:
        options = options_with(of_verb=_of_verb(found.plan, found.command, situation.fit))
    return _Choice(advised, options, overloads, None if found is None else found.sentence)


def _of_verb(plan: Plan, command: str, state: ClusterState) -> Score:
    """What the plan of a verb does. It isn't written, nor graded by the checks that its steps rest on."""
    scored = score(plan, state, file="", digest="")
    return replace(scored, shedder=command, placement="", plan=None, digest=None, confidence=None)


def _verbs(alone: LeftAlone, request: Request) -> Verbs:
    """The verbs of goals with the options of the request."""
    situation, balance = alone.situation, Goal("balance")
    fit, settings = situation.fit, situation.settings.values

    def plan_for(goal: Goal) -> Plan | None:
        if why_no_destination(fit, settings):
            return None
        try:
            asked = request.for_goal(resolved_goal(goal, fit.brokers.ids, settings.overloaded_ratio))
        except UsageError:  # as where the overload threshold is 0%
            return None
        made = next(ShedderAnswers.of(asked, situation, with_splits=False).plans(_NO_INPUTS, ()))
        return made if isinstance(made, Plan) else None

    return Verbs(plan_for, same_options=request.for_goal(balance) != Request().for_goal(balance))


def _overloading(scores: Sequence[Score], plan_in: PlanIn, floor_ratio: float) -> Mapping[str, str]:
    """The worthwhile plans that take a broker above what it has on the way, and which: bundles that brokers exchange
    move one after the other."""
    found: dict[str, str] = {}
    for row in scores:
        is_low = row.confidence == "low"  # as of a step that needs more than there is
        if row.plan is not None and is_low and is_worthwhile(row, floor_ratio):
            peak = highest_on_the_way(plan_in(row.plan))
            if peak.usage_ratio > max(1.0, (row.maximum_before or 0.0) + floor_ratio):
                found[row.plan] = f"{peak.broker} to {peak.usage_ratio:.1%}"
    return found


def _splits_in_vain(row: Score, situation: Situation, plan_in: PlanIn) -> bool:
    """Whether a plan only splits, and changes no load, or goes by rates that are also of clients that come back."""
    if row.plan is None or row.unloads or not row.splits:
        return False
    is_unsettled = any(ailment.unsettles_rates for ailment in situation.ailments)
    return is_unsettled or only_splits_in_vain(plan_in(row.plan), situation.fit, situation.settings.values)


def _refusals(state: ClusterState, settings: ResolvedSettings, request: Request) -> tuple[Refusal, ...]:
    """Every requested strategy that can't judge the cluster, each once."""
    shedders = {deciding(shedder, "")[0]: None for shedder in request.shedders}
    placements = {entry: None for name in request.placements for entry in deciding(request.shedders[0], name)[1:]}
    unloads = [
        *(unload_refusals(entry, "shedder", state) for entry in shedders),
        *(unload_refusals(entry, "placement", state) for entry in placements),
    ]
    splits = split_refusals(state, settings.values) if request.splits else ()
    return (*chain.from_iterable(unloads), *splits)


def _findings(
    alone: LeftAlone, planned: Sequence[Score], advised: Score | None, plan_in: PlanIn, judged: Coverage, verbs: Verbs
) -> tuple[Finding, ...]:
    """Findings from the plans of the cluster's own strategies (from all if there are none), and the advised plan."""
    own = [row for row in planned if (row.shedder, row.placement) == alone.situation.configured] or planned
    splitter = decider_of(alone.situation.state.load_manager).name
    others = [row for row in planned if row not in own and (row == advised or row.shedder == splitter)]
    plans = [plan_in(str(row.plan)) for row in (*own, *others)]
    advised_plan = None if advised is None else plan_in(str(advised.plan))
    return findings(alone.situation, plans, judged, verbs, advised_plan)


def _dominated_by(row: Score, ranked: Sequence[Score], floor_ratio: float) -> str | None:
    better = dominating(row, ranked, floor_ratio)
    return None if better is None else combination(better.shedder, better.placement)
