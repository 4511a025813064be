"""Compares all combinations and advises one of their plans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from pulsar_advisor.model.cluster.bundle_range import parse_range
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.plans.plan import CONFIDENCES, Confidence, Plan, Step
from pulsar_advisor.planning.usage.merit import SAME_RATIO, Cost, Merit


@dataclass(frozen=True)
class Score:
    """What a plan does and costs; ratios are weighted maximum usage 0..1. `error` says why there is no plan."""

    shedder: str
    placement: str
    plan: str | None
    digest: str | None
    steps: int
    unloads: int
    splits: int
    not_executable: int
    maximum_before: float | None
    maximum_after: float | None
    standard_deviation_before: float | None
    standard_deviation_after: float | None
    moved_throughput_bytes_per_s: float
    acts_in_cycle: int | None
    why_nothing: str | None
    error: str | None
    topics: int = 0
    """Loaded topics that the unloads close; likewise producers and consumers that have to connect again."""
    producers: int = 0
    consumers: int = 0
    confidence: Confidence | None = None
    """Of the least certain step; None without a step."""
    steps_sha256: str | None = None
    """The same for plans whose steps do the same, whatever strategy made them; None without a step."""
    lowest_maximum_after: float | None = None
    """Low end of the range in which the busiest broker's usage is expected; None in plans of earlier releases, too."""
    highest_maximum_after: float | None = None

    @property
    def cost(self) -> Cost:
        """What it disturbs."""
        return Cost(
            self.unloads, self.splits, self.topics, self.producers, self.consumers, self.moved_throughput_bytes_per_s
        )

    @property
    def merit(self) -> Merit | None:
        """None for a plan that unloads nothing, or whose effect is not known."""
        if not self.unloads or self.maximum_after is None or self.standard_deviation_after is None:
            return None
        return Merit(self.maximum_after, self.highest_maximum_after, self.standard_deviation_after, self.cost)

    @property
    def gain_ratio(self) -> float | None:
        """By how much the busiest broker's usage falls."""
        if self.maximum_before is None or self.maximum_after is None:
            return None
        return self.maximum_before - self.maximum_after


def score(plan: Plan, state: ClusterState, *, file: str, digest: str) -> Score:
    """The score of a plan as it was written; the clients of its bundles are those of the state it was made from."""
    executable = plan.executable_steps
    unloads = plan.unloads
    before, after = plan.predicted.before, plan.predicted.after
    clients = clients_of(plan, state).values()
    return Score(
        shedder=plan.shedder,
        placement=plan.placement,
        plan=file,
        digest=digest,
        steps=len(executable),
        unloads=len(unloads),
        splits=len(executable) - len(unloads),
        not_executable=len(plan.steps) - len(executable),
        maximum_before=before.maximum_ratio,
        maximum_after=after.maximum_ratio,
        lowest_maximum_after=after.lowest_maximum_ratio,
        highest_maximum_after=after.highest_maximum_ratio,
        standard_deviation_before=before.standard_deviation_ratio,
        standard_deviation_after=after.standard_deviation_ratio,
        moved_throughput_bytes_per_s=sum(step.expect.throughput_bytes_per_s or 0.0 for step in unloads),
        acts_in_cycle=plan.decision.acts_in_cycle,
        why_nothing=plan.decision.why_nothing,
        error=None,
        topics=sum(step.expect.topics for step in unloads),
        producers=sum(producers for producers, _ in clients),
        consumers=sum(consumers for _, consumers in clients),
        confidence=min((step.confidence for step in executable), key=CONFIDENCES.index, default=None),
        steps_sha256=steps_sha256(executable) if executable else None,
    )


def clients_of(plan: Plan, state: ClusterState) -> Mapping[str, tuple[int, int]]:
    """Step id -> the producers and consumers of its bundle, of each executable unload.

    A child of a bundle that the plan splits gets the same share of them as of the bundle's loaded topics: the clients
    of single topics aren't known here.
    """
    wholes = {
        (step.namespace, child): step.bundle
        for step in plan.executable_steps
        if step.action == "split"
        for child in step.children
    }
    namespaces, bundles = {name: row for row, name in enumerate(state.namespaces.names)}, state.bundles
    wanted: defaultdict[tuple[int, int, int], list[tuple[Step, bool]]] = defaultdict(list)
    for step in plan.executable_steps:
        if step.action == "unload":
            bundle = step.bundle
            while (step.namespace, bundle) in wholes:
                bundle = wholes[step.namespace, bundle]
            place = (namespaces.get(step.namespace, -1), *parse_range(bundle))
            wanted[place].append((step, bundle != step.bundle))
    found = {step.id: (0, 0) for steps in wanted.values() for step, _ in steps}
    for row in np.flatnonzero(np.isin(bundles.namespace, [namespace for namespace, *_ in wanted])).tolist():
        place = (int(bundles.namespace[row]), int(bundles.lower[row]), int(bundles.upper[row]))
        for step, is_part in wanted.get(place, ()):
            share = min(1.0, step.expect.topics / max(1, int(bundles.topics[row]))) if is_part else 1.0
            found[step.id] = (round(share * bundles.producers[row]), round(share * bundles.consumers[row]))
    return found


def steps_sha256(steps: Iterable[Step]) -> str:
    """Hash of what steps move and split, and how, whatever made them."""
    done = sorted(
        (step.action, step.namespace, step.bundle, step.destination or "", *step.boundaries) for step in steps
    )
    return sha256(repr(done).encode()).hexdigest()


def no_score(shedder: str, placement: str, error: str) -> Score:
    """The row of a combination that could not be judged."""
    return Score(
        shedder=shedder, placement=placement, plan=None, digest=None, steps=0, unloads=0, splits=0, not_executable=0,
        maximum_before=None, maximum_after=None, standard_deviation_before=None, standard_deviation_after=None,
        moved_throughput_bytes_per_s=0.0, acts_in_cycle=None, why_nothing=None, error=error,
    )  # fmt: skip


def advise(scores: Sequence[Score], configured: tuple[str, str], floor_ratio: float = 0.0) -> Score | None:
    """The combination to advise; None if nothing is worth doing.

    Only plans that lower the busiest broker by at least the noise floor count. Among those within that floor of the
    best, the fewest splits decide, then the fewest disturbed topics and clients, the fewest unloads, the lowest spread,
    the cluster's own choice (`configured`: shedder, placement), and the name. If no plan counts, one that splits and
    makes nothing worse is advised.
    """
    done = [row for row in scores if row.plan is not None and row.steps > 0]
    ranked = ranked_by_effect([row for row in done if is_worthwhile(row, floor_ratio)], configured, floor_ratio)
    return next(iter(ranked or ranked_by_effect(filter(is_harmless_split, done), configured, floor_ratio)), None)


def is_worthwhile(row: Score, floor_ratio: float) -> bool:
    """Whether a plan lowers the busiest broker, by at least the noise floor."""
    return row.gain_ratio is not None and row.gain_ratio > 0 and row.gain_ratio >= floor_ratio


def is_harmless_split(row: Score) -> bool:
    """Whether a plan splits bundles and doesn't raise the busiest broker."""
    return row.splits > 0 and (row.gain_ratio is None or row.gain_ratio >= 0)


def ranked_by_effect(rows: Iterable[Score], configured: tuple[str, str], floor_ratio: float) -> list[Score]:
    """The best first, in groups of plans within the noise floor of the group's best; each group in such groups by the
    worse end of the plans' ranges, and in each of these the cheapest first."""

    def cost(row: Score) -> tuple[Any, ...]:
        spread = row.standard_deviation_after if row.standard_deviation_after is not None else float("inf")
        by_choice = (row.shedder != configured[0], row.placement != configured[1], row.shedder, row.placement)
        return (row.splits, row.cost.disturbed, row.unloads, round(spread, 3), *by_choice)

    return [
        row
        for close in _alike(rows, _likely, floor_ratio)
        for close_at_worst in _alike(close, _at_worst, floor_ratio)
        for row in sorted(close_at_worst, key=cost)
    ]


def _alike(rows: Iterable[Score], figure: Callable[[Score], float], floor_ratio: float) -> Iterator[list[Score]]:
    """Groups of plans whose figure is within the noise floor of the lowest of the group, ascending."""
    left = sorted(rows, key=figure)
    while left:
        alike = [row for row in left if figure(row) <= figure(left[0]) + max(floor_ratio, SAME_RATIO)]
        yield alike
        left = left[len(alike) :]


def _likely(row: Score) -> float:
    return row.maximum_after if row.maximum_after is not None else float("inf")


def _at_worst(row: Score) -> float:
    return row.highest_maximum_after if row.highest_maximum_after is not None else _likely(row)


def on_front(points: Sequence[tuple[float, float]]) -> tuple[bool, ...]:
    """Per point (disruption, highest usage), whether no other point is as low in both and lower in one."""

    def is_beaten(point: tuple[float, float]) -> bool:
        return any(other[0] <= point[0] and other[1] <= point[1] and other != point for other in points)

    return tuple(not is_beaten(point) for point in points)


def dominating(row: Score, ranked: Iterable[Score], floor_ratio: float) -> Score | None:
    """The first plan ranked before `row` that reaches as much, to within noise, and costs no more; None without one.

    A plan with the same steps doesn't count as another one.
    """
    if row.merit is None:
        return None
    for other in ranked:
        if other == row or other.steps_sha256 == row.steps_sha256 is not None:
            return None
        if other.merit is not None and other.merit.is_as_good(row.merit, floor_ratio):
            return other
    return None
