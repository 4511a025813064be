"""`DefaultNamespaceBundleSplitStrategyImpl`: each broker of the Extensible manager splits its own bundles.

What Pulsar does: every `loadBalancerSplitIntervalMinutes` a broker goes through the figures of its last statistics
pass. A bundle with at least two loaded topics that it owns and whose range can be cut counts a hit when loaded topics,
sessions, rate or throughput exceed a limit, and loses its hits when none does. With more hits than
`loadBalancerNamespaceBundleSplitConditionHitCountThreshold` it is split, if its namespace has room (including bundles
chosen earlier in this cycle), no bundle that shares one of its bounds is being split, and the default algorithm gives
exactly one boundary. Hits of a split bundle are forgotten; after `loadBalancerMaxNumberOfBundlesToSplitPerCycle` splits
the cycle stops, and bundles it did not reach keep their hits.

Quirks kept: "being split" compares texts, so `t/ns1` also matches `t/ns10`; a boundary outside the bundle ends the
cycle with an error and discards its decisions, while the hits stay as they are; one on 0xffffffff passes here and fails
later.

Releases: the same in every one that has it.
Source: Pulsar `DefaultNamespaceBundleSplitStrategyImpl` (read from the 4.0.8 classes), `NamespaceBundle`, 3.0 to 5.0.1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND
from pulsar_advisor.model.cluster.cluster_state import Booleans, ClusterState, Indices, Integers
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.model.strategy.decision import Split, SplittingDecision
from pulsar_advisor.model.strategy.memory import SplitMemory
from pulsar_advisor.model.strategy.outcomes import Outcomes
from pulsar_advisor.splitting.cluster_bundles import automatic_boundaries, bundle_counts, figures_of, reported_bundles
from pulsar_advisor.splitting.limits import LEAST_TOPICS, LIMIT_KEYS, REASONS, BundleFigures, SplitLimits
from pulsar_advisor.splitting.registry import algorithm_in_force
from pulsar_advisor.splitting.verdicts import SplitOutcome, Verdicts, joined

READS: Final[frozenset[Input]] = frozenset({"bundle_traffic", "bundle_counts"})
SETTING_KEYS: Final = (
    *LIMIT_KEYS,
    "loadBalancerNamespaceBundleSplitConditionHitCountThreshold",
    "loadBalancerMaxNumberOfBundlesToSplitPerCycle",
)


@dataclass(frozen=True)
class HitRules:
    """How many hits trigger a split, and how many bundles a broker splits in one cycle."""

    threshold: int
    """A bundle needs more hits than this."""
    splits_per_cycle: int
    """The cycle stops at exactly this number; never, if not positive."""

    @classmethod
    def from_settings(cls, settings: LoadBalancerSettings) -> HitRules:
        """The rules in force."""
        return cls(
            settings.load_balancer_namespace_bundle_split_condition_hit_count_threshold,
            settings.load_balancer_max_number_of_bundles_to_split_per_cycle,
        )


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What one broker knows besides the figures of its bundles."""

    name: Callable[[int], str]
    """Full name of a row of the figures, as the broker writes it."""
    owned: Booleans
    """Per row, whether the ownership channel names this broker as the owner."""
    bundle_count: Integers
    """Per namespace, -1 if it can't be counted."""
    splitting: tuple[str, ...]
    """Full names of the bundles in state Splitting, anywhere in the cluster."""
    boundaries: Callable[[int], tuple[int, ...] | None]
    """What the default algorithm gives for a row; raises `UsageError` if it refuses."""


@dataclass(frozen=True, eq=False)
class Cycle:
    """One cycle of one broker."""

    splits: tuple[tuple[int, int, str], ...]
    """Row, boundary and Pulsar's reason (one of `REASONS`) of each split, in the order of their choice."""
    verdicts: Verdicts
    hits: Integers
    """Per row, after the cycle."""
    aborted: bool
    """Whether a boundary outside its bundle ended the cycle with an error."""


def run_cycle(
    figures: BundleFigures, hits: Integers, limits: SplitLimits, rules: HitRules, surroundings: Surroundings
) -> Cycle:
    """One broker examines its bundles once; `hits` is per row, from earlier cycles."""
    verdicts = Verdicts.by_limits(figures, limits)
    few = figures.topics < LEAST_TOPICS
    foreign = ~few & ~surroundings.owned
    width = figures.upper - figures.lower
    narrow = ~few & ~foreign & (width <= 1)
    considered = ~(few | foreign | narrow)
    exceeded = considered & (verdicts.code > SplitOutcome.SPLIT)
    limit = np.where(exceeded, verdicts.code - SplitOutcome.SPLIT, 0)
    verdicts.record(few, SplitOutcome.FEW_TOPICS, figures.topics[few], LEAST_TOPICS)
    verdicts.record(foreign, SplitOutcome.NOT_OWNER)
    verdicts.record(narrow, SplitOutcome.NARROW_RANGE, width[narrow], 1)

    hits_now = np.where(considered, np.where(exceeded, hits + 1, 0), hits)
    enough = considered & (hits_now > rules.threshold)
    pending = exceeded & ~enough
    verdicts.record(pending, SplitOutcome.HITS_PENDING, hits_now[pending], rules.threshold)
    verdicts.record(enough & ~exceeded, SplitOutcome.SPLIT)

    splits: list[tuple[int, int, str]] = []
    chosen_in: Counter[int] = Counter()
    stopped_at, aborted = len(figures), False
    for row in np.flatnonzero(enough).tolist():
        namespace = int(figures.namespace[row])
        boundary = _single_boundary(row, figures, limits, surroundings, chosen_in[namespace])
        if isinstance(boundary, _Refusal):
            verdicts.record(row, *boundary)
            continue
        upper = int(figures.upper[row])
        if not int(figures.lower[row]) < boundary < upper:
            verdicts.record(row, SplitOutcome.BOUNDARY_OUTSIDE, boundary)
            if not boundary == upper == FULL_UPPER_BOUND:
                stopped_at, aborted = row + 1, True
                break
        splits.append((row, boundary, REASONS[limit[row]]))
        chosen_in[namespace] += 1
        hits_now[row] = 0
        if len(splits) == rules.splits_per_cycle:
            stopped_at = row + 1
            break

    not_reached = np.arange(stopped_at, len(figures))
    hits_now[not_reached] = hits[not_reached]
    verdicts.record(not_reached, SplitOutcome.NOT_REACHED, len(splits), rules.splits_per_cycle)
    if aborted:
        verdicts.record(not_reached, SplitOutcome.CYCLE_FAILS)
        verdicts.record(np.array([row for row, _, _ in splits], dtype=np.intp), SplitOutcome.CYCLE_FAILS)
        splits.clear()
    return Cycle(tuple(splits), verdicts, hits_now, aborted)


class _Refusal(NamedTuple):
    """Why a bundle with enough hits is not split, and the comparison behind it."""

    answer: SplitOutcome
    left: float = math.nan
    right: float = math.nan


def _single_boundary(
    row: int, figures: BundleFigures, limits: SplitLimits, surroundings: Surroundings, chosen_before: int
) -> int | _Refusal:
    """Where to cut a bundle with enough hits; `chosen_before` bundles of its namespace were chosen in this cycle."""
    count = int(surroundings.bundle_count[figures.namespace[row]])
    if count < 0:
        return _Refusal(SplitOutcome.BUNDLE_COUNT_UNKNOWN)
    if count + chosen_before >= limits.namespace_bundles:
        return _Refusal(SplitOutcome.NAMESPACE_FULL, count + chosen_before, limits.namespace_bundles)
    if _shares_bound_with_splitting(surroundings.name(row), surroundings.splitting):
        return _Refusal(SplitOutcome.SPLITTING)
    try:
        boundaries = surroundings.boundaries(row) or ()
    except UsageError:
        return _Refusal(SplitOutcome.ALGORITHM_FAILS)
    except DataNotFit:
        return _Refusal(SplitOutcome.TOPICS_UNKNOWN)
    return boundaries[0] if len(boundaries) == 1 else _Refusal(SplitOutcome.NO_SINGLE_BOUNDARY, len(boundaries), 1)


def _shares_bound_with_splitting(bundle: str, splitting: tuple[str, ...]) -> bool:
    namespace, _, text = bundle.rpartition("/")
    lower, upper = text.split("_")[:2]
    ranges = (name.rpartition("/")[2] for name in splitting if name.startswith(namespace))
    return any(other.startswith(lower) or other.endswith(upper) for other in ranges)


def decide(
    state: ClusterState, settings: LoadBalancerSettings, memory: SplitMemory
) -> tuple[SplittingDecision, SplitMemory]:
    """What all brokers would split in one cycle, each independently, and what they remember for the next one.

    Assumes that no bundle is in state Splitting.
    """
    limits = SplitLimits.from_settings(settings, bandwidth_bits=32)
    rules = HitRules.from_settings(settings)
    counts = bundle_counts(state, settings)
    algorithm = algorithm_in_force(settings).name
    visited = reported_bundles(state)
    splits: list[Split] = []
    outcomes: list[Outcomes] = []
    hits_of_brokers: dict[str, Mapping[str, int]] = {}
    for rows in np.split(visited, np.flatnonzero(np.diff(state.bundles.owner[visited])) + 1):
        if not len(rows):
            continue
        figures = figures_of(state, rows, state.bundles.traffic)
        broker = state.brokers.ids[state.bundles.owner[rows[0]]]
        remembered = memory.hits.get(broker, {})
        hits = np.zeros(len(rows), dtype=np.int64)
        if remembered:
            hits[:] = [remembered.get(state.bundle_name(int(row)), 0) for row in rows]
        cycle = run_cycle(figures, hits, limits, rules, _surroundings(state, settings, rows, counts))
        outcome = cycle.verdicts.outcomes(figures)
        near_tie, chosen = outcome.near_tie(), outcome.chosen()
        outcomes.append(outcome)
        splits += [
            Split(int(rows[row]), algorithm, (boundary,), outcome.explain(row), bool(near_tie[row]))
            for row, boundary, _ in cycle.splits
            if chosen[row]
        ]
        hit = np.flatnonzero(cycle.hits)
        if len(hit):
            hits_of_brokers[broker] = MappingProxyType(
                {state.bundle_name(int(rows[row])): int(cycle.hits[row]) for row in hit}
            )
    return SplittingDecision(tuple(splits), joined(outcomes)), SplitMemory(MappingProxyType(hits_of_brokers))


def _surroundings(
    state: ClusterState, settings: LoadBalancerSettings, rows: Indices, bundle_count: Integers
) -> Surroundings:
    return Surroundings(
        name=lambda row: state.bundle_name(int(rows[row])),
        owned=np.ones(len(rows), dtype=np.bool_),
        bundle_count=bundle_count,
        splitting=(),
        boundaries=lambda row: automatic_boundaries(state, settings, int(rows[row])),
    )
