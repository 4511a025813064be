"""`recommend`: computes plans, outcomes and the advice on Spark, one task per shedder with every placement strategy."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pulsar_advisor.documents.recommendation import (
    Advice,
    Combination,
    Foresight,
    Recommendation,
    Undone,
)
from pulsar_advisor.documents.recommendation import Coverage as JudgedCoverage
from pulsar_advisor.documents.recommendation import Refusal as RefusalDocument
from pulsar_advisor.documents.recommendation import Trial as TrialDocument
from pulsar_advisor.documents.simulation import Ending, SimulatedScore
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.settings import (
    LoadBalancerSettings,
    ResolvedSettings,
    is_dynamic,
    resolve_settings,
)
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.load.base_load import base_load, with_usage_of_rates
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.strategy.entry import combination
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.advice.capacity import overload_sentence
from pulsar_advisor.planning.advice.compare import (
    Score,
    advise,
    dominating,
    no_score,
    ranked_by_effect,
    score,
)
from pulsar_advisor.planning.advice.coverage import coverage
from pulsar_advisor.planning.advice.findings import findings
from pulsar_advisor.planning.advice.goal_sentence import goal_sentence
from pulsar_advisor.planning.advice.headline import advice_sentence, all_refused
from pulsar_advisor.planning.advice.options import Balancing, Cost, ranked_options
from pulsar_advisor.planning.kinds.goal_outcome import GoalOutcome, goal_outcome
from pulsar_advisor.planning.plans.build_plan import build_plan, planned_settings
from pulsar_advisor.planning.plans.deciding import deciding
from pulsar_advisor.planning.plans.own_balancer import shedding_switched_off_by
from pulsar_advisor.planning.plans.propose import propose as propose_combinations
from pulsar_advisor.planning.plans.propose import propose_splits
from pulsar_advisor.planning.plans.setting_keys import setting_keys
from pulsar_advisor.planning.proposals.configured import Configured, configured_of
from pulsar_advisor.planning.proposals.fitness import Refusal, fit_part, split_refusals, unload_refusals
from pulsar_advisor.planning.proposals.proposal import Proposal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.usage.forecast import loads_of, usage_ratios
from pulsar_advisor.planning.usage.lower_bound import lowest_maximum
from pulsar_advisor.planning.usage.model_errors import model_errors
from pulsar_advisor.planning.usage.noise import noise_floor
from pulsar_advisor.reporting.futures import by_itself, ending
from pulsar_advisor.simulation.foresight import CYCLES, foresee, left_alone
from pulsar_advisor.simulation.simulate import Simulation
from pulsar_advisor.simulation.trials import Trial, trials
from pulsar_advisor.snapshots.index import update_index
from pulsar_advisor.splitting.registry import decider_of
from pulsar_advisor.stages.background import in_background
from pulsar_advisor.stages.lint import findings_on
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.plans import (
    PLANS,
    RECOMMENDATION,
    PlanReference,
    read_plan,
    write_plan,
)
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.judged import (
    check_results,
    earlier_states,
    fit_states,
    inputs_of,
    published_beside,
    resolved_request,
    set_aside_by_checks,
    settings_of,
    state_of,
)
from pulsar_advisor.tables.outcomes import write_outcomes
from pulsar_advisor.tables.state import settings_inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.execution.person import Person

_log = logging.getLogger(__name__)

_LONGEST: Final = ("OverloadShedder", "ThresholdShedder", "MinimalMoveShedder", "AvgShedder")
"""The shedders that may move most of a large cluster: begun last, one of them would run alone on its core."""


def check(root: Root, snapshot: str, request: Request) -> None:
    """Raise errors for unusable settings and data now, rather than after Spark has started."""
    resolved_request(root, snapshot, request)
    inputs_of(root, snapshot)


def run(spark: Callable[[], SparkSession], root: Root, snapshot: str, request: Request) -> Recommendation:
    """Compute and write the plans, the outcomes and, last, `recommendation.json`; returns what it says.

    `spark` gives the session, which may have to start: the simulations, which need none, run meanwhile.

    Raises `DataNotFit` without a passed validation of the same manifest, and `Refused` while another process makes
    plans of the snapshot: an answer assembled from two requests would fit neither.
    """
    check(root, snapshot, request)
    folder = root.folder(PLANS, snapshot)
    with held(folder, snapshot, f"plans of snapshot {snapshot} are being made") as lease:
        document = _recommend(spark, root, snapshot, request)
        lease.require()
        write_file(folder / RECOMMENDATION, document.content())
    update_index(root, snapshot)
    return document


def _recommend(spark: Callable[[], SparkSession], root: Root, snapshot: str, request: Request) -> Recommendation:
    request = resolved_request(root, snapshot, request)
    simulated = in_background(lambda: _left_alone(root, snapshot, request))
    # Loads Java's side of Spark, for which a refusal doesn't wait.
    from pulsar_advisor.tables.fan_out import fan_out

    tasks = {
        shedder: {
            "root": root.url,
            "cluster": root.cluster,
            "snapshot": snapshot,
            "request": request.of(shedder).document(),
            "with_splits": shedder == request.shedders[0],
        }
        for shedder in sorted(request.shedders, key=lambda name: (*_LONGEST, name).index(name))
    }
    session = spark()
    _log.info("asking %s", some_of(request.shedders))
    answers = fan_out(session, tasks, recommend_shedder)
    _log.info("simulating what happens next, and comparing")
    scores = [Score(**row) for shedder in request.shedders for row in json.loads(answers[shedder])]
    folder = root.folder(PLANS, snapshot)

    @cache
    def plan_in(file: str) -> Plan:  # a plan of a large cluster takes a second and many megabytes
        return read_plan(str(folder / file))

    return answer(simulated.result(), scores, request, plan_in, inputs_of(root, snapshot).manifest_sha256)


@dataclass(frozen=True)
class LeftAlone:
    """A cluster, and what would become of it without a plan."""

    state: ClusterState
    fit: ClusterState
    earlier: Sequence[ClusterState]
    """The fit part of earlier snapshots, oldest first."""
    settings: ResolvedSettings
    own: Simulation | AdvisorError
    """By its own strategies; an error if they can't judge it."""
    tried: tuple[Trial, ...]
    published: ClusterState | None = None
    """What the leader sees, where that may show how busy a broker is that was set aside."""
    set_aside_by: tuple[str, ...] = ()
    """The failed checks that set something aside."""


def _left_alone(root: Root, snapshot: str, request: Request) -> LeftAlone:
    settings = settings_of(root, snapshot, request.what_if)
    state = state_of(root, snapshot, request.view, request.what_if)
    earlier = earlier_states(root, state, request.history, request.what_if, settings.values)
    fit = fit_part(state)
    own: Simulation | AdvisorError
    try:
        configured = configured_of(state.load_manager, settings.values)
        own = left_alone(fit, settings.values, configured, seed=request.seed, history=earlier)
    except AdvisorError as error:
        own = error
    tried = _trials(root, state, request, earlier) if request.goal is None else ()
    published, set_aside_by = published_beside(root, state), set_aside_by_checks(root, snapshot)
    return LeftAlone(state, fit, earlier, settings, own, tried, published, set_aside_by)


def recommend_shedder(task: Mapping[str, Any]) -> str:
    """One shedder with its placement strategies, on an executor: writes plans and outcomes, returns scores as JSON."""
    root, snapshot = Root(task["root"], task["cluster"]), task["snapshot"]
    request = Request.from_document(task["request"])
    settings = settings_of(root, snapshot, request.what_if)
    inputs, checks = inputs_of(root, snapshot), check_results(root, snapshot)
    try:
        state, earlier = fit_states(root, snapshot, request.view, request.history, request.what_if, settings.values)
    except AdvisorError as error:
        return json.dumps([asdict(no_score(request.shedder, name, str(error))) for name in request.placements])
    scores = []
    proposals = _proposals(request, state, settings.values, earlier)
    splits = propose_splits(request, state, settings.values) if task["with_splits"] else None
    if splits is not None:
        proposals.append((splits.placement, splits))
    for placement, proposal in proposals:
        if isinstance(proposal, AdvisorError):
            scores.append(no_score(request.shedder, placement, str(proposal)))
        elif proposal is not splits or splits.splits:
            keys = setting_keys(proposal.shedder, placement, request)
            plan = build_plan(state, settings, proposal, request, inputs, keys, checks, earlier)
            written = write_plan(root, plan)
            scores.append(score(plan, state, file=written.file, digest=written.digest))
    write_outcomes(root, state, request.shedder, proposals)
    return json.dumps([asdict(row) for row in scores])


def _proposals(
    request: Request, state: ClusterState, settings: LoadBalancerSettings, earlier: Sequence[ClusterState]
) -> list[tuple[str, Proposal | AdvisorError]]:
    """What one shedder proposes with each placement strategy; the error that keeps it from judging the cluster."""
    try:
        return list(propose_combinations(request, state, settings, earlier))
    except AdvisorError as error:
        return [(name, error) for name in request.placements]


def propose_plans(root: Root, recommendation: Recommendation, ledger: Ledger, proposer: Person) -> None:
    """Record in the ledger who proposes those plans of a recommendation just computed that have steps to carry out."""
    for row in recommendation.combinations:
        if row.plan is not None and row.digest is not None and row.steps:
            plan = PlanReference(recommendation.snapshot, row.plan, row.digest)
            ledger.record_proposal(plan.sealed(root), proposer, not_computed_here="")


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


def answer(
    simulated: LeftAlone,
    scores: Sequence[Score],
    request: Request,
    plan_in: Callable[[str], Plan],
    manifest_sha256: str,
) -> Recommendation:
    """What is recommended; `plan_in` has the plan of each file in the scores."""
    state, fit, settings, earlier = simulated.state, simulated.fit, simulated.settings, simulated.earlier
    refused = _refusals(fit, settings, request)
    configured = configured_of(state.load_manager, settings.values)
    planned = [row for row in scores if row.plan is not None]
    floor = noise_floor([*earlier, fit], settings.values)
    if request.goal is None:
        advised = advise(scores, configured, floor.ratio)
    else:
        advised = next((row for row in scores if row.steps), None)
    advised_plan = plan_in(advised.plan) if advised is not None and advised.plan is not None else None
    foresight = _foresight(simulated, configured, advised_plan)
    outcome: GoalOutcome | None = None
    if request.goal is not None:
        outcome = goal_outcome(plan_in(str(planned[0].plan))) if planned else "missed"
    if request.goal is None or not planned:
        sentence = advice_sentence(
            advised_plan,
            scores,
            by_itself(foresight),
            refused,
            floor.ratio,
            overload_sentence(fit, settings.values),
            without_traffic=not state.brokers.traffic.any(),
        )
    else:
        sentence = goal_sentence(plan_in(str(planned[0].plan)), floor.ratio)
    judged = coverage(state, settings.values, simulated.published, simulated.set_aside_by)
    none_judged = all_refused((row.why_nothing for row in scores), [refusal.sentence for refusal in refused])
    sentence = judged.headline(sentence, claims_enough=advised is None and not none_judged)
    ranked = ranked_by_effect(planned, configured, floor.ratio)
    own = [row for row in planned if (row.shedder, row.placement) == configured] or planned
    splitting = [row for row in planned if row.shedder == decider_of(state.load_manager).name and row not in own]
    found = findings(state, settings.values, [plan_in(str(row.plan)) for row in (*own, *splitting)], judged)
    keys = frozenset[str]().union(*(setting_keys(row.shedder, row.placement, request) for row in planned))
    base = base_load(fit, earlier)
    tried = tuple(map(TrialDocument.of, simulated.tried))
    balancing = _balancing(foresight, tried, settings.release)
    overloaded = settings.values.load_balancer_broker_overloaded_threshold_percentage / 100
    options = (
        ranked_options(scores, configured, balancing, floor.ratio, _spread(fit, settings), overloaded)
        if request.goal is None
        else ()
    )
    return Recommendation(
        cluster=state.cluster,
        snapshot=state.snapshot,
        manifest_sha256=manifest_sha256,
        proposer=request.proposer,
        view=state.view,
        combinations=tuple(
            Combination(**asdict(row), dominated_by=_dominated_by(row, ranked, floor.ratio)) for row in scores
        ),
        advice=Advice(
            plan=advised.plan if advised else None, digest=advised.digest if advised else None, sentence=sentence
        ),
        goal_outcome=outcome,
        findings=tuple(found),
        coverage=JudgedCoverage.of(judged),
        refusals=tuple(map(RefusalDocument.of, refused)),
        notes=tuple(settings.notes),
        foresight=foresight,
        noise_floor=floor,
        model_errors=model_errors([*earlier, fit]),
        lowest_maximum_ratio=lowest_maximum(with_usage_of_rates(fit, earlier, base), settings.values, base.likely),
        trials=tried,
        options=tuple(options),
        settings=planned_settings(settings, keys),
    )


def _spread(state: ClusterState, settings: ResolvedSettings) -> tuple[float, float] | None:
    """The highest usage of the available brokers and its standard deviation; None without a broker."""
    ratios = usage_ratios(loads_of(state), settings.values)[state.brokers.available]
    known = ratios[np.isfinite(ratios)]
    return (float(known.max()), float(known.std())) if len(known) else None


def _trials(root: Root, state: ClusterState, request: Request, earlier: Sequence[ClusterState]) -> tuple[Trial, ...]:
    """What comes of the changes that lint proposes; none under a what-if, which is a proposal itself."""
    if request.what_if:
        return ()
    inputs = settings_inputs(root, state.snapshot)
    changes = [finding.change for finding in findings_on(state, inputs, root)]
    return trials(
        changes, fit_part(state), lambda what_if: resolve_settings(*inputs, what_if).values, earlier, request.seed
    )


def _balancing(foresight: Foresight, tried: Sequence[TrialDocument], release: str) -> list[Balancing]:
    """Pulsar's own balancer as it is, and with each of the changes that were tried; switched on where it isn't."""
    found: list[tuple[Mapping[str, str], Sequence[str], Ending]] = []
    if foresight.own is not None:
        found.append(({}, foresight.switched_off_by, foresight.own))
    found += [(trial.change, trial.switched_off_by, trial.score) for trial in tried if trial.score is not None]
    return [
        Balancing(
            change=(change := {**dict.fromkeys(switched_off_by, "true"), **wanted}),
            ends=ending(score),
            settles=score.ended == "settled",
            maximum_ratio=score.last_usage_maximum_ratio,
            standard_deviation_ratio=score.last_usage_standard_deviation_ratio,
            cost=Cost(
                unloads=score.unloads,
                splits=score.splits,
                topics=score.topics,
                producers=score.producers,
                consumers=score.consumers,
                moved_throughput_bytes_per_s=score.moved_throughput_bytes_per_s,
            ),
            condition="the load stays as it is" + (f", and {_takes_effect(change, release)}" if change else ""),
        )
        for wanted, switched_off_by, score in found
    ]


def _takes_effect(change: Mapping[str, str], release: str) -> str:
    if all(is_dynamic(release, key) for key in change):
        return "the values are set dynamically"
    return "the brokers are restarted with it"


def _dominated_by(row: Score, ranked: Sequence[Score], floor_ratio: float) -> str | None:
    better = dominating(row, ranked, floor_ratio)
    return None if better is None else combination(better.shedder, better.placement)


def _foresight(simulated: LeftAlone, own: Configured, plan: Plan | None) -> Foresight:
    """What happens next under the cluster's own strategies, by themselves and after the advised plan."""
    off = shedding_switched_off_by(simulated.settings.values)
    try:
        if isinstance(simulated.own, AdvisorError):
            raise simulated.own
        seed = 0 if plan is None else plan.seed
        found = foresee(simulated.own, simulated.settings.values, own, plan, seed=seed, history=simulated.earlier)
    except AdvisorError as error:
        return Foresight(cycles=CYCLES, own=None, acting=(), plan=None, error=str(error), switched_off_by=off)
    return Foresight(
        cycles=found.cycles,
        own=SimulatedScore.of(found.own, shedder=own.shedder, placement=own.placement, what_if="", seed=seed),
        acting=found.acting,
        plan=None if found.interference is None else Undone.by(found.interference),
        error=None,
        switched_off_by=off,
    )
