"""Turns a proposal into a plan: ordered steps, expectations, predicted effects, within limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from pulsar_advisor.model.cluster.bundle_range import format_range
from pulsar_advisor.model.cluster.cluster_state import (
    CPU,
    NO_ROW,
    ClusterState,
    Floats,
    rate_per_s,
    throughput_bytes_per_s,
)
from pulsar_advisor.model.cluster.inputs import EVERY_STEP_READS
from pulsar_advisor.model.configuration.settings import ResolvedSettings
from pulsar_advisor.model.load.base_load import BaseLoad, base_load, with_usage_of_rates
from pulsar_advisor.model.plans.plan import (
    Doubt,
    Expectation,
    Identity,
    Plan,
    PlanDecision,
    PlanInputs,
    PlannedBase,
    PlannedSetting,
    Prediction,
    Step,
    StepPrediction,
)
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.plans.confidence import Grade, Grading, StepCheck
from pulsar_advisor.planning.plans.deciding import deciding
from pulsar_advisor.planning.plans.own_balancer import would_pulsar_act
from pulsar_advisor.planning.proposals.children import child_moves
from pulsar_advisor.planning.proposals.executable import why_move_not, why_split_not
from pulsar_advisor.planning.proposals.fitness import EVERY_UNLOAD_READS, splitting
from pulsar_advisor.planning.proposals.limits import left_out_sentence, splits_within, unloads_within
from pulsar_advisor.planning.proposals.proposal import Move, Proposal
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.usage.forecast import Outlook, finite, forecast, usage_ratios
from pulsar_advisor.planning.usage.noise import noise_floor
from pulsar_advisor.splitting.boundaries import split_bundles
from pulsar_advisor.splitting.division import divided

_ROUNDING: Final = 1e-9


def boundaries_of(state: ClusterState, namespace: int) -> list[int]:
    """The current boundaries of a namespace (row), ascending, ends included."""
    rows = np.flatnonzero((state.bundles.namespace == namespace) & state.bundles.in_boundaries)
    bounds = np.unique(np.concatenate((state.bundles.lower[rows], state.bundles.upper[rows])))
    return [int(bound) for bound in bounds]


def planned_settings(settings: ResolvedSettings, keys: frozenset[str]) -> dict[str, PlannedSetting]:
    """Settings by Pulsar's key as texts (lists joined by commas, unset is empty), each with its origin."""
    values = settings.values.model_dump(mode="json", by_alias=True)

    def text(value: Any) -> str:
        if isinstance(value, list):
            return ",".join(value)
        if isinstance(value, bool):
            return str(value).lower()
        return "" if value is None else str(value)

    return {key: PlannedSetting(value=text(values[key]), origin=settings.origins[key]) for key in sorted(keys)}


def _plain_figures(figures: Mapping[str, object]) -> dict[str, int | float | str | None]:
    """The figures that are a single number, word or flag; a shedder's figures per broker are in its outcomes."""
    plain: dict[str, int | float | str | None] = {}
    for name, value in figures.items():
        if isinstance(value, bool):
            plain[name] = str(value).lower()
        elif isinstance(value, int | np.integer):
            plain[name] = int(value)
        elif isinstance(value, float | np.floating):
            plain[name] = finite(float(value))
        elif isinstance(value, str):
            plain[name] = value
    return plain


def _samples(state: ClusterState) -> dict[str, int]:
    """The most samples that any bundle's stored averages gained, by name; nothing where none did."""
    most = {
        "folded_samples": int(state.bundles.folded_samples.max(initial=0)),
        "unknown_samples": int(state.bundles.unknown_samples.max(initial=0)),
    }
    return most if any(most.values()) else {}


def _changes(state: ClusterState, settings: ResolvedSettings, history: Sequence[ClusterState]) -> Floats:
    """Per broker, by how much (relative) its throughput may differ from what it last published.

    The change since the last snapshot, but at most what it needn't publish; that much without such a snapshot.
    """
    most = settings.values.load_balancer_report_update_threshold_percentage / 100
    changes = np.full(len(state.brokers), most)
    if not history:
        return changes
    before = dict(zip(history[-1].brokers.ids, throughput_bytes_per_s(history[-1].brokers.traffic), strict=True))
    for row, (broker, now) in enumerate(
        zip(state.brokers.ids, throughput_bytes_per_s(state.brokers.traffic), strict=True)
    ):
        past = before.get(broker)
        if past is not None and max(past, now) > 0:
            changes[row] = min(most, abs(now - past) / max(past, now))
    return changes


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


class _Fate(NamedTuple):
    """What becomes of a move."""

    obstacle: str | None
    """Why it isn't made."""
    arrives: bool
    """Whether the bundle reaches a broker that is known."""
    source_ratio: float
    """Predicted usage of its source right afterwards."""
    highest_source_ratio: float
    """The most that it may be."""
    destination_ratio: float
    """Likewise of its destination, if it is known."""
    highest_destination_ratio: float
    """The most that it may be."""


class _Steps:
    """Steps under construction, and the state expected when the next one is sent."""

    def __init__(
        self,
        state: ClusterState,
        settings: ResolvedSettings,
        outlook: Outlook,
        noise_ratio: float,
        changes: Floats,
        unloads: Grading,
        splits: Grading,
    ) -> None:
        self.state = state
        self.of_unloads = unloads
        self.of_splits = splits
        self.settings = settings
        self.noise_ratio = noise_ratio
        self.changes = changes
        self.steps: list[Step] = []
        self.origin = self.outlook = outlook
        self.boundaries: dict[int, Sequence[int]] = {}
        self.boundary_texts: dict[int, tuple[str, ...]] = {}
        self.owner: dict[int, int] = {}
        self.last_split: dict[int, str] = {}
        self.unloaded_by: dict[int, str] = {}

    @np.errstate(over="ignore", invalid="ignore")
    def _expectation(self, state: ClusterState, bundle: int, owner: int, boundaries: tuple[str, ...]) -> Expectation:
        traffic = state.bundles.traffic[bundle]
        return Expectation(
            owner=state.brokers.ids[owner] if owner != NO_ROW else "",
            boundaries=boundaries,
            topics=int(state.bundles.topics[bundle]),
            msg_rate_per_s=finite(float(rate_per_s(traffic))),
            throughput_bytes_per_s=finite(float(throughput_bytes_per_s(traffic))),
        )

    def _owner(self, bundle: int) -> int:
        return self.owner.get(bundle, int(self.state.bundles.owner[bundle]))

    def _boundaries(self, bundle: int) -> Sequence[int]:
        namespace = int(self.state.bundles.namespace[bundle])
        if namespace not in self.boundaries:
            self.boundaries[namespace] = boundaries_of(self.state, namespace)
        return self.boundaries[namespace]

    def _boundary_texts(self, bundle: int) -> tuple[str, ...]:
        namespace = int(self.state.bundles.namespace[bundle])
        if namespace not in self.boundary_texts:
            self.boundary_texts[namespace] = tuple(f"0x{bound:08x}" for bound in self._boundaries(bundle))
        return self.boundary_texts[namespace]

    def _predicted(self, ratios: Mapping[int, float]) -> StepPrediction:
        """The usage ratios of the brokers at these rows."""
        ids = self.state.brokers.ids
        return StepPrediction(brokers={ids[broker]: finite(ratios[broker]) for broker in sorted(ratios)})

    def _ratio(self, broker: int) -> float:
        return float(usage_ratios(self.outlook.likely, self.settings.values)[broker])

    def _unpublished(self, move: Move) -> tuple[Doubt, ...]:
        """A doubt if the decision depends on less than what may have changed since the leader was last informed.

        Extensible brokers publish changes of more than `loadBalancerReportUpdateThresholdPercentage`; smaller ones the
        leader doesn't see. Without what they published, the figures are those of now.
        """
        state = self.state
        if move.awaits:
            sentence = (
                f"Pulsar unloads it only if {' and '.join(move.awaits)} will have published a new load by the next "
                "cycle. That is likely, as often as brokers have published lately."
            )
            return (Doubt(confidence="medium", sentence=sentence),)
        if state.load_manager != "extensible" or state.published_load is not None:
            return ()
        change = self.changes[move.source]
        if move.margin >= change:
            return ()
        source = state.brokers.ids[move.source]
        sentence = (
            f"It was decided by a margin of {move.margin:.1%}; the figures of {source} may have changed by "
            f"{change:.1%} since it published them to the leader (capture with --service-url to read those)."
        )
        return (Doubt(confidence="medium", sentence=sentence),)

    def _may_stay(self, move: Move) -> tuple[Doubt, ...]:
        """A doubt if a Modular leader may draw the bundle's own broker: then it doesn't unload it."""
        if self.state.load_manager != "modular" or move.source not in move.possible:
            return ()
        sentence = (
            f"Pulsar may draw its destination among {len(move.possible)} brokers, and leaves it where it is if it "
            f"draws {self.state.brokers.ids[move.source]}."
        )
        return (Doubt(confidence="medium", sentence=sentence),)

    def _may_go_elsewhere(self, move: Move) -> tuple[Doubt, ...]:
        """A doubt if an Extensible leader may choose another destination on what brokers publish by its next cycle."""
        others = [self.state.brokers.ids[row] for row in move.possible if row != move.destination]
        if self.state.published_load is None or not others:
            return ()
        sentence = f"Pulsar may choose {' or '.join(others)} instead, on what brokers publish before the next cycle."
        return (Doubt(confidence="medium", sentence=sentence),)

    def _above_capacity(self, broker: int, likely: float, highest: float) -> tuple[Doubt, ...]:
        """A doubt if the broker would need more than it has: that can't be, so the figures or the plan are wrong."""
        if not highest > 1.0:
            return ()
        sentence = f"{self.state.brokers.ids[broker]} would need {likely:.0%} of a resource, {highest:.0%} at most."
        return (Doubt(confidence="low" if likely > 1.0 else "medium", sentence=sentence),)

    def _may_not_fall(self, broker: int, fate: _Fate) -> tuple[Doubt, ...]:
        """A doubt if the source may be used more afterwards than is likely, by more than two snapshots differ."""
        if not fate.highest_source_ratio - fate.source_ratio > self.noise_ratio + _ROUNDING:
            return ()
        sentence = (
            f"How far {self.state.brokers.ids[broker]} falls depends on how much of its CPU follows messages, which "
            "the snapshots don't show."
        )
        return (Doubt(confidence="medium", sentence=sentence),)

    def _next_id(self) -> str:
        return f"step-{len(self.steps) + 1:03d}"

    def unload(self, moves: Sequence[Move]) -> None:
        for move, fate in zip(moves, self._fates(self.state, moves), strict=True):
            grade = self.of_unloads.grade(move.bundle, (move.source, move.destination), near_tie=move.near_tie)
            grade = grade.with_doubts((*self._unpublished(move), *self._may_stay(move), *self._may_go_elsewhere(move)))
            owner, boundaries = self._owner(move.bundle), self._boundary_texts(move.bundle)
            step = self._add_unload(
                self.state, move, fate, self._expectation(self.state, move.bundle, owner, boundaries), grade, ()
            )
            if step.executable:
                self.unloaded_by[move.bundle] = step.id
                if move.destination != NO_ROW:
                    self.owner[move.bundle] = move.destination

    def unload_children(self, split: Split, request: Request, placement: str) -> None:
        """Unload the children of the split just added, unless the plan has already moved the bundle."""
        cut = self.steps[-1]
        if not cut.executable or split.bundle in self.unloaded_by:
            return
        state = divided(self._after_steps(), (split,)).state
        for move in child_moves(state, self.settings.values, placement, split, request.seed):
            if request.limits.excludes("", state.brokers.ids[move.destination]):
                continue
            unloads = sum(step.action == "unload" for step in self.steps)
            if request.limits.max_unloads is not None and unloads >= request.limits.max_unloads:
                return
            expect = self._expectation(state, move.bundle, move.source, self._boundary_texts(split.bundle))
            grade = self.of_unloads.grade(split.bundle, (move.source, move.destination), near_tie=move.near_tie)
            (fate,) = self._fates(state, [move])
            self._add_unload(state, move, fate, expect, grade, (cut.id,))

    def _after_steps(self) -> ClusterState:
        """The state as the moves so far would leave it."""
        brokers, owner = self.state.brokers, self.state.bundles.owner.copy()
        for bundle, broker in self.owner.items():
            owner[bundle] = broker
        return replace(
            self.state,
            brokers=replace(brokers, usage=self.outlook.likely.usage, traffic=self.outlook.likely.traffic),
            bundles=replace(self.state.bundles, owner=owner),
        )

    def _fates(self, state: ClusterState, moves: Sequence[Move]) -> list[_Fate]:
        """What becomes of moves that follow one another; of all at once, since a large plan has thousands."""
        obstacles = [move.obstacle or why_move_not(state, move) for move in moves]
        arrive = [
            obstacle is None and move.destination != NO_ROW for move, obstacle in zip(moves, obstacles, strict=True)
        ]
        rows = [
            (move.bundle if arrives else NO_ROW, move.source, move.destination)
            for move, arrives in zip(moves, arrive, strict=True)
        ]
        self.outlook, ratios = self.outlook.along(self.origin, state.bundles, rows, self.settings.values)
        _, (source, destination), _ = np.moveaxis(ratios, 1, 0)
        highest_source, highest_destination = np.fmax.reduce(ratios, axis=1)
        columns = (source, highest_source, destination, highest_destination)
        return [_Fate(*fate) for fate in zip(obstacles, arrive, *(column.tolist() for column in columns), strict=True)]

    def _add_unload(
        self, state: ClusterState, move: Move, fate: _Fate, expect: Expectation, grade: Grade, after: tuple[str, ...]
    ) -> Step:
        if fate.arrives:
            grade = grade.with_doubts(
                (
                    *self._above_capacity(move.destination, fate.destination_ratio, fate.highest_destination_ratio),
                    *self._may_not_fall(move.source, fate),
                )
            )
        ratios = {move.source: fate.source_ratio, move.destination: fate.destination_ratio}
        ratios.pop(NO_ROW, None)
        step = Step(
            id=self._next_id(),
            after=after,
            action="unload",
            namespace=state.namespaces.names[state.bundles.namespace[move.bundle]],
            bundle=state.bundle_range(move.bundle),
            source=state.brokers.ids[move.source],
            destination=None if move.destination == NO_ROW else state.brokers.ids[move.destination],
            algorithm=None,
            boundaries=(),
            children=(),
            reason=move.reason,
            executable=fate.obstacle is None,
            not_executable_because=fate.obstacle,
            confidence=grade.confidence,
            expect=expect,
            predicted=self._predicted(ratios),
            failed_checks=grade.failed_checks,
            doubts=grade.doubts,
        )
        self.steps.append(step)
        return step

    def split(self, split: Split) -> None:
        state, bundle = self.state, split.bundle
        namespace = int(state.bundles.namespace[bundle])
        lower, upper = int(state.bundles.lower[bundle]), int(state.bundles.upper[bundle])
        cuts = [lower, *split.boundaries, upper]
        owner = self._owner(bundle)
        expect = self._expectation(state, bundle, owner, self._boundary_texts(bundle))
        grade = self.of_splits.grade(bundle, (owner,), near_tie=split.near_tie)
        obstacle = why_split_not(state, split)
        if obstacle is None and bundle in self.unloaded_by and owner == int(state.bundles.owner[bundle]):
            obstacle = "an earlier step unloads the bundle without a destination, so its owner can't be known"
        after = [self.unloaded_by[bundle]] if bundle in self.unloaded_by else []
        if namespace in self.last_split:
            after.append(self.last_split[namespace])
        step = Step(
            id=self._next_id(),
            after=tuple(sorted(after)),
            action="split",
            namespace=state.namespaces.names[namespace],
            bundle=format_range(lower, upper),
            source=state.brokers.ids[owner] if owner != NO_ROW else "",
            destination=None,
            algorithm=split.algorithm,
            boundaries=tuple(f"0x{bound:08x}" for bound in split.boundaries),
            children=tuple(format_range(*pair) for pair in pairwise(cuts)) if split.boundaries else (),
            reason=split.reason,
            executable=obstacle is None,
            not_executable_because=obstacle,
            confidence=grade.confidence,
            expect=expect,
            predicted=self._predicted({} if owner == NO_ROW else {owner: self._ratio(owner)}),
            failed_checks=grade.failed_checks,
            doubts=grade.doubts,
        )
        if step.executable:
            self.boundaries[namespace], _ = split_bundles(
                self._boundaries(bundle), lower, upper, positions=split.boundaries
            )
            self.boundary_texts.pop(namespace, None)
            self.last_split[namespace] = step.id
            self.outlook = self.outlook.after_split(owner, len(split.boundaries))
        self.steps.append(step)


def build_plan(
    state: ClusterState,
    settings: ResolvedSettings,
    proposal: Proposal,
    request: Request,
    inputs: PlanInputs,
    setting_keys: frozenset[str],
    checks: Sequence[StepCheck] = (),
    history: Sequence[ClusterState] = (),
) -> Plan:
    """The plan of one proposal. Unloads come first: they are reversible, and a split removes its bundle. The unloads of
    a split's children follow it, if they are requested.

    `setting_keys` are the keys that the strategies read; the plan records them and the switches with their origin.
    `checks` are the validation results that the steps rest on, `history` the earlier snapshots, which the shedder
    remembers and which show the brokers' base load.
    """
    strategies = deciding(proposal.shedder, proposal.placement)
    decider, algorithm = splitting(state, settings.values)
    unloads = Grading(
        state,
        checks,
        EVERY_UNLOAD_READS.union(*(strategy.reads for strategy in strategies)),
        derived=proposal.shedder if state.load_manager not in strategies[0].load_managers else "",
    )
    splits = Grading(state, checks, EVERY_STEP_READS | decider.reads | algorithm.reads)
    base = base_load(state, history)
    outlook = Outlook.of(state, base, with_usage_of_rates(state, history, base))
    noise = noise_floor([*history, state], settings.values)
    steps = _Steps(state, settings, outlook, noise.ratio, _changes(state, settings, history), unloads, splits)
    moves, left_out = unloads_within(proposal.moves, state, request.limits)
    steps.unload(moves)
    for split in splits_within(proposal.splits, state, request.limits):
        steps.split(split)
        if request.unload_children or split.destinations:
            steps.unload_children(split, request, proposal.placement)
    return Plan(
        schema_name="pulsar-advisor/plan/5",
        cluster=state.cluster,
        identity=Identity(cluster_name=state.cluster_name, broker_ids=state.brokers.ids),
        snapshot=state.snapshot,
        inputs=inputs,
        pulsar_version=str(state.pulsar_version),  # without one, no settings could be resolved
        load_manager=state.load_manager,
        view=state.view,
        shedder=proposal.shedder,
        placement=proposal.placement,
        settings=planned_settings(settings, setting_keys),
        limits=request.limits.as_mapping(),
        seed=request.seed,
        memory={"snapshots": [moment.snapshot for moment in history], **_samples(state)},
        steps=tuple(steps.steps),
        predicted=Prediction(
            model="base_load",
            before=forecast(state, steps.origin, settings.values),
            after=forecast(state, steps.outlook, settings.values, noise.ratio),
            base=_planned_base(state, base),
        ),
        decision=PlanDecision(
            figures=_plain_figures(proposal.figures),
            acts_in_cycle=proposal.acts_in_cycle,
            why_nothing=proposal.why_nothing,
            caveats=(*proposal.caveats, *(left_out_sentence(left_out, len(proposal.moves)) if request.goal else ())),
            would_pulsar_act=would_pulsar_act(
                settings, state.load_manager, proposal.shedder, bool(proposal.moves), bool(proposal.splits)
            ),
        ),
        rests_on={"unload": unloads.rests_on, "split": splits.rests_on},
        goal=request.goal,
    )
