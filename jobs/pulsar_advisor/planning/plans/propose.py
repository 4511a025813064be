"""Proposes what one shedder with one placement strategy would unload, and what the cluster's decider would split."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, Floats
from pulsar_advisor.model.configuration.class_names import LOAD_MANAGERS
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.load.extensible_load import ExtensibleLoad
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.strategy.decision import SheddingDecision
from pulsar_advisor.model.strategy.entry import find
from pulsar_advisor.model.strategy.memory import MOST_CYCLES
from pulsar_advisor.model.strategy.outcomes import Outcomes
from pulsar_advisor.placement import registry as placements
from pulsar_advisor.placement.filters import placement_facts, unload_obstacle
from pulsar_advisor.planning.kinds import registry as kinds
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.planning.proposals.executable import why_no_destination
from pulsar_advisor.planning.proposals.fitness import split_refusals, unload_refusals
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.proposals.proposal import Answers, Move, Proposal
from pulsar_advisor.planning.proposals.replay import replay
from pulsar_advisor.planning.proposals.select_broker import BrokerSelection, CandidateSets
from pulsar_advisor.planning.proposals.views import observed
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.shedding import registry as shedders
from pulsar_advisor.shedding.cycle import LoadManagerOutcome, SteadyState, Surroundings, carry_out, steady_state
from pulsar_advisor.splitting.registry import decider_of
from pulsar_advisor.splitting.steady_splits import steady_splits


def propose(request: Request, situation: Situation) -> Iterator[tuple[str, Proposal | AdvisorError]]:
    """One proposal per placement strategy, or an `AdvisorError` if the combination can't be judged.

    The request is about one shedder, or about a goal, which makes one proposal. A strategy that lacks an input is not
    run: the proposal names the input.
    """
    if request.goal is not None:
        yield "", _for_goal(request.goal, request.limits, situation)
        return
    state, settings = situation.fit, situation.settings.values
    if lacks := unload_refusals(find(shedders.SHEDDERS, request.shedder, "shedder"), "shedder", state):
        yield from ((name, _without_unloads(request.shedder, name, lacks[0].sentence)) for name in request.placements)
        return
    shedder = shedders.load(request.shedder)
    candidates = CandidateSets.of(placement_facts(state, settings), shedding=True)
    view = observed(shedder.observe, candidates.facts)
    memory = replay(shedder, situation.earlier, state, settings)
    steady = steady_state(shedder, view, settings, memory)
    published = _published(view, lambda other: steady_state(shedder, other, settings, memory))
    for name in request.placements:
        if lacks := unload_refusals(find(placements.PLACEMENTS, name, "placement strategy"), "placement", state):
            yield name, _without_unloads(request.shedder, name, lacks[0].sentence)
            continue
        try:
            yield name, _combine(request, name, steady, published, candidates, view)
        except AdvisorError as error:
            yield name, error


def _for_goal(goal: Goal, limits: Limits, situation: Situation) -> Proposal:
    """What a plan kind proposes for a resolved goal; nothing where a destination would not be kept."""
    if lacks := unload_refusals(kinds.plan_kind(goal.kind), "shedder", situation.fit):
        return _without_unloads(goal.kind, "", lacks[0].sentence)
    if why := why_no_destination(situation.fit, situation.settings.values):
        return _without_unloads(goal.kind, "", why)
    room = Room.of(situation, goal.ceiling_ratio).within(limits)
    return kinds.load(goal.kind).propose(goal, room.onto(room.rows_of(goal.onto)) if goal.onto else room)


@dataclass(frozen=True)
class _Published:
    """What the shedder would do if brokers published otherwise than predicted before the next cycle."""

    brokers: tuple[str, ...] = ()
    """Ids of those that will probably publish."""
    if_silent: Mapping[int, int] = field(default_factory=dict)
    """Bundle row -> destination row of what it would unload on what they published last; empty if none will publish."""
    if_approached: Mapping[int, int] = field(default_factory=dict)
    """The same once every broker has published the load that it approaches."""

    def possible(self, move: Move) -> tuple[int, ...]:
        """The destinations (rows) of a move, whatever is published."""
        others = (self.if_silent, self.if_approached)
        return tuple(sorted({move.destination, *(rows.get(move.bundle, move.destination) for rows in others)}))


def _published(view: object, decide: Callable[[object], SteadyState]) -> _Published:
    if not isinstance(view, ExtensibleLoad) or view.load_approached is None:
        return _Published()

    def destinations(load: Floats) -> Mapping[int, int]:
        decision = decide(replace(view, load=load)).decision
        return dict(zip(decision.bundle.tolist(), decision.destination.tolist(), strict=True))

    if_approached = destinations(view.load_approached)
    if view.load_now is None:
        return _Published(if_approached=if_approached)
    brokers = tuple(view.broker_ids[row] for row in np.flatnonzero(view.load != view.load_now))
    return _Published(brokers, destinations(view.load_now), if_approached)


def _combine(
    request: Request,
    placement: str,
    steady: SteadyState,
    published: _Published,
    candidates: CandidateSets,
    view: object,
) -> Proposal:
    state, strategy = candidates.state, placements.load(placement)
    selection = BrokerSelection.of(
        placement,
        candidates,
        request.seed,
        # A class with both roles, such as AvgShedder, is one object in Pulsar and has one memory.
        memory=steady.memory if isinstance(steady.memory, strategy.Memory) else None,
        view=view if strategy.observe is shedders.load(request.shedder).observe else None,
        likeliest=True,
    )
    chosen = steady.decision
    left, wrapper = carry_out(chosen, surroundings(selection, chosen))
    moves = tuple(
        replace(
            move,
            possible=selection.possible.get(move.bundle, published.possible(move)),
            awaits=published.brokers if move.bundle not in published.if_silent else (),
        )
        for move in _moves(state, chosen, left)
    )
    answers = [
        Answers(request.shedder, "shedder", chosen.brokers),
        Answers(request.shedder, "shedder", chosen.bundles),
        Answers(LOAD_MANAGERS[state.load_manager], "load manager", wrapper),
        *(
            Answers(placement, "placement", outcomes, state.bundle_name(bundle))
            for bundle, outcomes in selection.explained
        ),
    ]
    return Proposal(
        shedder=request.shedder,
        placement=placement,
        moves=moves,
        answers=tuple(answers),
        acts_in_cycle=steady.acts_in_cycle,
        figures=chosen.figures,
        why_nothing=None if moves else _why_nothing(request.shedder, state, chosen, wrapper),
        caveats=_caveats(request.shedder, state, chosen, published),
    )


def _caveats(shedder: str, state: ClusterState, chosen: SheddingDecision, published: _Published) -> tuple[str, ...]:
    """A sentence if the shedder would unload more bundles on what the brokers published last."""
    more = published.if_silent.keys() - chosen.bundle.tolist()
    if not more:
        return ()
    bundles = ", ".join(map(state.bundle_name, sorted(more)))
    return (
        f"It hangs on what is published before the next cycle: without a new load from "
        f"{' and '.join(published.brokers)}, {shedder} also unloads {bundles}.",
    )


def _without_unloads(shedder: str, placement: str, why: str) -> Proposal:
    """What remains of a combination that can't be judged."""
    return Proposal(shedder, placement, why_nothing=why)


def propose_splits(request: Request, situation: Situation) -> Proposal | None:
    """What the cluster's own decider would split; None if that isn't requested, or can't be judged.

    Pulsar decides about splits without regard to shedding, and they can't be undone. So they are a separate proposal in
    the decider's name. Children that are to be unloaded go where the cluster's own placement strategy puts them.
    """
    state, settings = situation.fit, situation.settings.values
    if request.goal is not None or not request.splits or split_refusals(state, settings):
        return None
    steady = steady_splits(state, settings)
    decider = decider_of(state.load_manager).name
    places_children = request.unload_children and state.load_manager != "simple"
    return Proposal(
        shedder=decider,
        placement=situation.configured.placement if places_children else "",
        splits=steady.decision.splits,
        answers=(Answers(decider, "splitting", steady.decision.bundles),),
        acts_in_cycle=steady.acts_in_cycle,
        why_nothing=None if steady.decision.splits else f"{decider} finds no bundle to split.",
    )


def surroundings(selection: BrokerSelection, chosen: SheddingDecision) -> Surroundings:
    """The facts that the load manager checks for each chosen bundle.

    Only the Modular one asks anti-affinity once more and, from 3.0.1 on, places a bundle before it is unloaded; the
    Simple one doesn't know excluded namespaces.
    """
    candidates = selection.candidates
    state, places_first = candidates.state, candidates.places_first
    named = dict(zip(chosen.bundle.tolist(), chosen.destination.tolist(), strict=True))

    def obstacle(bundle: int, source: int) -> LoadManagerOutcome | None:
        sets, namespace = selection.candidates, int(state.bundles.namespace[bundle])
        match unload_obstacle(sets.facts, sets.allowed(namespace), namespace, source):
            case "isolation":
                return LoadManagerOutcome.POLICIES
            case "anti_affinity" if state.load_manager == "modular":
                return LoadManagerOutcome.ANTI_AFFINITY
        return None

    def destination(bundle: int, source: int) -> int:
        if named[bundle] != NO_ROW:
            allowed = selection.candidates.allowed(int(state.bundles.namespace[bundle]))
            return named[bundle] if allowed[named[bundle]] else NO_ROW
        return selection.select(bundle, source) if places_first else selection.assign(bundle, source)

    return Surroundings(
        available_brokers=int(state.brokers.available.sum()),
        excluded_namespace=candidates.excluded[state.bundles.namespace],
        obstacle=obstacle,
        destination=destination,
        places_first=places_first,
    )


def _moves(state: ClusterState, chosen: SheddingDecision, left: SheddingDecision) -> tuple[Move, ...]:
    broker_row = {int(broker): row for row, broker in enumerate(chosen.brokers.index)}
    is_chosen = np.flatnonzero(chosen.bundles.chosen())
    bundle_row = {int(chosen.bundles.index[row]): int(row) for row in is_chosen}
    near_tie, margin = chosen.bundles.near_tie(), chosen.bundles.margin()
    moves = []
    for source, bundle, destination in zip(
        left.source.tolist(), left.bundle.tolist(), left.destination.tolist(), strict=True
    ):
        reasons = []
        if source in broker_row:
            reasons.append(f"{state.brokers.ids[source]}: {chosen.brokers.explain(broker_row[source])}")
        if (row := bundle_row.get(bundle)) is not None:
            reasons.append(f"the bundle: {chosen.bundles.explain(row)}")
        moves.append(
            Move(
                bundle=bundle,
                source=source,
                # A Simple leader ranks brokers by quotas that it keeps in memory: a destination would be a guess.
                destination=NO_ROW if state.load_manager == "simple" or destination == source else destination,
                reason="; ".join(reasons),
                near_tie=bool(row is not None and near_tie[row]),
                margin=math.inf if row is None else float(margin[row]),
            )
        )
    return tuple(moves)


def _why_nothing(shedder: str, state: ClusterState, chosen: SheddingDecision, wrapper: Outcomes) -> str:
    """The reason that decided: that of the first refused bundle, else of the broker that got furthest."""
    if len(wrapper):
        return f"{state.bundle_name(int(wrapper.index[0]))} {wrapper.explain(0)}."
    brokers = chosen.brokers
    if not len(brokers):
        return f"{shedder} had no broker to consider: none reported any load."
    decisive = brokers.decisive()
    return (
        f"{shedder} does not act within {MOST_CYCLES} cycles: "
        f"{state.brokers.ids[int(brokers.index[decisive])]}: {brokers.explain(decisive)}."
    )
