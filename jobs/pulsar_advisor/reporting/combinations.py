"""The strategies compared: a row per shedder and placement strategy with the effect and cost of its plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pulsar_advisor.documents.recommendation import Combination, Recommendation
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.defaults import behaviour_of
from pulsar_advisor.model.plans.plan import PlannedSetting
from pulsar_advisor.model.strategy.entry import combination
from pulsar_advisor.planning.proposals.configured import Configured, configured_strategies
from pulsar_advisor.reporting.figures import count, sentence

_SHEDDER_KEY: Final = "loadBalancerLoadSheddingStrategy"
_PLACEMENT_KEY: Final = "loadBalancerLoadPlacementStrategy"


@dataclass(frozen=True)
class CombinationRow:
    """One shedder with one placement strategy: the effect and cost of its plan. Usage is a ratio."""

    shedder: str
    placement: str
    plan: str | None
    steps: int
    unloads: int
    splits: int
    not_executable: int
    maximum_before: float | None
    maximum_after: float | None
    standard_deviation_before: float | None
    standard_deviation_after: float | None
    moved_throughput_bytes_per_s: float | None
    acts_in_cycle: int | None
    note: str
    """Why there are no steps, or no plan."""
    dominated_by: str | None
    """A better-ranked combination with the same effect, up to noise, at no higher cost: `shedder with placement`."""
    alike: tuple[str, ...]
    """Other combinations with the same steps or the same reason for none, as `shedder with placement`."""
    advised: bool
    configured: bool
    """Whether the cluster is configured for this combination."""

    @property
    def remark(self) -> str:
        """Further remarks about it; may be empty."""
        parts = [self.note]
        if self.not_executable:
            parts.append(count(self.not_executable, "more step" if self.steps else "step") + " can't be carried out")
        if self.dominated_by:
            parts.append(f"Dominated by {self.dominated_by}")
        if self.alike:
            parts.append(f"The same {'steps' if self.steps else 'answer'}: {'; '.join(self.alike)}")
        return " ".join(map(sentence, filter(None, parts)))


def own_combination(state: ClusterState, settings: Mapping[str, PlannedSetting]) -> Configured:
    """The shedder and placement strategy that a cluster is configured for."""
    shedder, placement = (settings[key].value if key in settings else "" for key in (_SHEDDER_KEY, _PLACEMENT_KEY))
    return configured_strategies(state.load_manager, shedder, placement, behaviour_of(state.deciding_release))


def shown_combination(
    recommendation: Recommendation, state: ClusterState, settings: Mapping[str, PlannedSetting]
) -> Combination | None:
    """The combination whose plan a report shows; None if there is no plan.

    The advised one; without advice, the one that the cluster is configured for, or else the first.
    """
    if recommendation.advice.digest is not None:
        return recommendation.advised
    planned = [row for row in recommendation.combinations if row.plan is not None]
    configured = own_combination(state, settings)

    def foreign(row: Combination) -> tuple[bool, bool]:
        return (row.shedder, row.placement) != configured, row.shedder != configured.shedder

    return min(planned, key=foreign, default=None)


def combination_rows(
    combinations: Sequence[Combination], advised: str | None, configured: Configured
) -> tuple[CombinationRow, ...]:
    """Rows with the advice first, then by predicted maximum, then by cost; those without steps or a plan last.

    Identical combinations share a row: that of the advised or configured one, else of the first by name.
    """
    steps = {(row.shedder, row.placement): row.steps_sha256 for row in combinations}
    rows = [
        CombinationRow(
            shedder=row.shedder,
            placement=row.placement,
            plan=row.plan,
            steps=row.steps,
            unloads=row.unloads,
            splits=row.splits,
            not_executable=row.not_executable,
            maximum_before=row.maximum_before,
            maximum_after=row.maximum_after,
            standard_deviation_before=row.standard_deviation_before,
            standard_deviation_after=row.standard_deviation_after,
            moved_throughput_bytes_per_s=row.moved_throughput_bytes_per_s,
            acts_in_cycle=row.acts_in_cycle,
            note=f"Could not be judged: {row.error}" if row.error else row.why_nothing or "",
            dominated_by=row.dominated_by,
            alike=(),
            advised=advised is not None and row.digest == advised,
            configured=(row.shedder, row.placement) == configured,
        )
        for row in combinations
    ]

    def order(row: CombinationRow) -> tuple[bool, bool, bool, float, float, str, str]:
        maximum = row.maximum_after if row.maximum_after is not None else float("inf")
        moved = row.moved_throughput_bytes_per_s or 0.0
        return (not row.advised, row.plan is None, not row.steps, maximum, moved, row.shedder, row.placement)

    def sameness(row: CombinationRow) -> tuple[object, ...]:
        done = steps[row.shedder, row.placement]
        if row.steps:
            return (done,) if done is not None else (row.shedder, row.placement)
        return (row.shedder, row.plan is None, row.note, row.not_executable)

    alike: dict[tuple[object, ...], list[CombinationRow]] = {}
    for row in sorted(rows, key=lambda row: (not row.configured, *order(row))):
        alike.setdefault(sameness(row), []).append(row)
    shown = []
    for group in alike.values():
        first = next((row for row in group if row.advised), group[0])
        others = (
            combination(row.shedder, row.placement) + (" (configured)" if row.configured else "")
            for row in group
            if row is not first
        )
        shown.append(replace(first, alike=tuple(sorted(others))))
    return tuple(sorted(shown, key=order))
