"""The steps of a plan under construction: what each expects and does, with the ones before it carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pulsar_advisor.model.cluster.bundle_range import format_range
from pulsar_advisor.model.cluster.cluster_state import NO_ROW, ClusterState, rate_per_s, throughput_bytes_per_s
from pulsar_advisor.model.load.resource_usage import usage_ratios
from pulsar_advisor.model.plans.plan import Expectation, Step, StepPrediction
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.planning.plans.confidence import Grade, Grading
from pulsar_advisor.planning.plans.doubts import (
    above_capacity,
    doubts_before,
    may_not_fall,
    places_it_later,
    unpublished_changes,
)
from pulsar_advisor.planning.proposals.children import child_moves
from pulsar_advisor.planning.proposals.executable import why_move_not, why_no_destination, why_split_not
from pulsar_advisor.planning.proposals.limits import EXCLUDED, Budgets, excluded_by
from pulsar_advisor.planning.proposals.proposal import Move
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.planning.usage.forecast import Outlook, finite
from pulsar_advisor.splitting.boundaries import split_bundles
from pulsar_advisor.splitting.division import divided


def boundaries_of(state: ClusterState, namespace: int) -> tuple[int, ...]:
    """The current boundaries of a namespace (row), ascending, ends included."""
    rows = np.flatnonzero((state.bundles.namespace == namespace) & state.bundles.in_boundaries)
    bounds = np.unique(np.concatenate((state.bundles.lower[rows], state.bundles.upper[rows])))
    return tuple(bounds.tolist())


@lru_cache(maxsize=16)
def _texts(boundaries: tuple[int, ...]) -> tuple[str, ...]:
    """Boundaries as Pulsar writes them. Cached, because each step of a namespace expects all of its boundaries."""
    return tuple(f"0x{bound:08x}" for bound in boundaries)


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


class Steps:
    """Steps under construction, and the state expected when the next one is sent."""

    def __init__(self, situation: Situation, unloads: Grading, splits: Grading) -> None:
        """`unloads` and `splits` grade them."""
        self.state, self.settings = situation.fit, situation.settings.values
        self.of_unloads, self.of_splits = unloads, splits
        self.noise_ratio = situation.noise.ratio
        self.changes = unpublished_changes(self.state, self.settings, situation.earlier)
        self.why_no_destination = why_no_destination(self.state, self.settings)
        self.steps: list[Step] = []
        self.origin = self.outlook = Outlook.of(self.state, situation.base, situation.settled)
        self.boundaries: dict[int, tuple[int, ...]] = {}
        self.owner: dict[int, int] = {}
        self.last_split: dict[int, str] = {}
        self.unloaded_by: dict[int, str] = {}

    def _expectation(self, state: ClusterState, bundle: int, owner: int, boundaries: tuple[int, ...]) -> Expectation:
        traffic = state.bundles.traffic[bundle]
        return Expectation(
            owner=state.brokers.ids[owner] if owner != NO_ROW else "",
            boundaries=_texts(boundaries),
            topics=int(state.bundles.topics[bundle]),
            msg_rate_per_s=finite(float(rate_per_s(traffic))),
            throughput_bytes_per_s=finite(float(throughput_bytes_per_s(traffic))),
        )

    def _owner(self, bundle: int) -> int:
        return self.owner.get(bundle, int(self.state.bundles.owner[bundle]))

    def _boundaries(self, bundle: int) -> tuple[int, ...]:
        namespace = int(self.state.bundles.namespace[bundle])
        if namespace not in self.boundaries:
            self.boundaries[namespace] = boundaries_of(self.state, namespace)
        return self.boundaries[namespace]

    def _predicted(self, ratios: Mapping[int, float]) -> StepPrediction:
        """The usage ratios of the brokers at these rows."""
        ids = self.state.brokers.ids
        return StepPrediction(brokers={ids[broker]: finite(ratios[broker]) for broker in sorted(ratios)})

    def _ratio(self, broker: int) -> float:
        return float(usage_ratios(self.outlook.likely, self.settings)[broker])

    def _next_id(self) -> str:
        return f"step-{len(self.steps) + 1:03d}"

    def unload(self, moves: Sequence[Move]) -> None:
        """Add the unloads that carry out these moves, one after another."""
        for move, fate in zip(moves, self._fates(self.state, moves), strict=True):
            grade = self.of_unloads.grade(move.bundle, (move.source, move.destination), near_tie=move.near_tie)
            grade = grade.with_doubts(doubts_before(self.state, move, self.changes[move.source]))
            owner, boundaries = self._owner(move.bundle), self._boundaries(move.bundle)
            expect = self._expectation(self.state, move.bundle, owner, boundaries)
            step = self._add_unload(self.state, move, fate, expect, grade, ())
            if step.executable:
                self.unloaded_by[move.bundle] = step.id
                if step.destination is not None:
                    self.owner[move.bundle] = move.destination

    def unload_children(self, split: Split, request: Request, placement: str, budgets: Budgets) -> Counter[str]:
        """Unload the children of the split just added, unless the plan has already moved the bundle; how many of them
        each limit (its option) leaves out."""
        left_out = Counter[str]()
        cut = self.steps[-1]
        if not cut.executable or split.bundle in self.unloaded_by:
            return left_out
        state = divided(self._after_steps(), (split,)).state
        for move in child_moves(state, self.settings, placement, split, request.seed):
            option = EXCLUDED if excluded_by(move, state, request.limits) else budgets.over(move, state)
            if option is not None:
                left_out[option] += 1
                continue
            budgets.spend(move, state)
            expect = self._expectation(state, move.bundle, move.source, self._boundaries(split.bundle))
            grade = self.of_unloads.grade(split.bundle, (move.source, move.destination), near_tie=move.near_tie)
            (fate,) = self._fates(state, [move])
            self._add_unload(state, move, fate, expect, grade, (cut.id,))
        return left_out

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
        """What becomes of moves that follow one another, computed all at once: a large plan has thousands."""
        obstacles = [move.obstacle or why_move_not(state, move) for move in moves]
        arrive = [
            obstacle is None and move.destination != NO_ROW for move, obstacle in zip(moves, obstacles, strict=True)
        ]
        rows = [
            (move.bundle if arrives else NO_ROW, move.source, move.destination)
            for move, arrives in zip(moves, arrive, strict=True)
        ]
        self.outlook, ratios = self.outlook.along(self.origin, state.bundles, rows, self.settings)
        source, destination = ratios[:, 1]
        highest_source, highest_destination = np.fmax.reduce(ratios, axis=1)
        columns = (source, highest_source, destination, highest_destination)
        return [_Fate(*fate) for fate in zip(obstacles, arrive, *(column.tolist() for column in columns), strict=True)]

    def _add_unload(
        self, state: ClusterState, move: Move, fate: _Fate, expect: Expectation, grade: Grade, after: tuple[str, ...]
    ) -> Step:
        if fate.arrives:
            source, destination = state.brokers.ids[move.source], state.brokers.ids[move.destination]
            grade = grade.with_doubts(
                (
                    *above_capacity(destination, fate.destination_ratio, fate.highest_destination_ratio),
                    *may_not_fall(source, fate.highest_source_ratio - fate.source_ratio, self.noise_ratio),
                    *places_it_later(destination, self.why_no_destination),
                )
            )
        is_named = move.destination != NO_ROW and self.why_no_destination is None
        ratios = {move.source: fate.source_ratio, move.destination: fate.destination_ratio}
        ratios.pop(NO_ROW, None)
        step = Step(
            id=self._next_id(),
            after=after,
            action="unload",
            namespace=state.namespace_of(move.bundle),
            bundle=state.bundle_range(move.bundle),
            source=state.brokers.ids[move.source],
            destination=state.brokers.ids[move.destination] if is_named else None,
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
        """Add a split."""
        state, bundle = self.state, split.bundle
        namespace = int(state.bundles.namespace[bundle])
        lower, upper = int(state.bundles.lower[bundle]), int(state.bundles.upper[bundle])
        cuts = [lower, *split.boundaries, upper]
        owner = self._owner(bundle)
        expect = self._expectation(state, bundle, owner, self._boundaries(bundle))
        grade = self.of_splits.grade(bundle, (owner,), near_tie=split.near_tie)
        obstacle = why_split_not(state, self.settings, split)
        if obstacle is None and bundle in self.unloaded_by and owner == int(state.bundles.owner[bundle]):
            obstacle = "an earlier step unloads the bundle without a destination, so its owner can't be known"
        after = [self.unloaded_by[bundle]] if bundle in self.unloaded_by else []
        if namespace in self.last_split:
            after.append(self.last_split[namespace])
        step = Step(
            id=self._next_id(),
            after=tuple(sorted(after)),
            action="split",
            namespace=state.namespace_of(bundle),
            bundle=format_range(lower, upper),
            source=state.brokers.ids[owner] if owner != NO_ROW else "",
            destination=None,
            algorithm=split.algorithm,
            boundaries=_texts(split.boundaries),
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
            self.boundaries[namespace] = split_bundles(self._boundaries(bundle), lower, upper, split.boundaries)
            self.last_split[namespace] = step.id
            self.outlook = self.outlook.after_split(owner, len(split.boundaries))
        self.steps.append(step)
