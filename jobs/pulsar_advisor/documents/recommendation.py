"""What `recommend` says about a snapshot: every combination with its plan's score, the advice, and its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pulsar_advisor.documents.document import OfSnapshot, Part
from pulsar_advisor.documents.simulation import SimulatedScore
from pulsar_advisor.model.configuration.kinds import View
from pulsar_advisor.model.plans.plan import PlannedSetting
from pulsar_advisor.planning.advice.compare import Score
from pulsar_advisor.planning.advice.coverage import Coverage
from pulsar_advisor.planning.advice.findings import Finding
from pulsar_advisor.planning.advice.headline import none_judged
from pulsar_advisor.planning.advice.options import Option
from pulsar_advisor.planning.kinds.goal_outcome import GoalOutcome
from pulsar_advisor.planning.proposals.fitness import Refusal
from pulsar_advisor.planning.usage.model_errors import ModelErrors
from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO, NoiseFloor
from pulsar_advisor.simulation.foresight import CycleSeen, Undone
from pulsar_advisor.simulation.trials import Trial


@dataclass(frozen=True, kw_only=True)
class Combination(Score):
    """A shedder with a placement strategy: the score of its plan."""

    not_executable: int = 0
    dominated_by: str | None = None
    """A better-ranked combination that reaches as much, but for noise, and costs no more: `shedder with placement`."""


class Advice(Part):
    """The advised plan, if any, and the advice in words."""

    plan: str | None
    digest: str | None
    sentence: str


class Foresight(Part):
    """What the cluster's own balancer does next, by itself and after the advised plan."""

    cycles: int
    error: str | None
    """Why it could not be simulated."""
    own: SimulatedScore | None
    acting: tuple[CycleSeen, ...]
    plan: Undone | None
    switched_off_by: tuple[str, ...] = ()
    """Switches that keep it from shedding; the simulations take them as on."""
    not_simulated: str | None = None
    """What of this cluster the simulations leave out, as a sentence."""


class Recommendation(OfSnapshot):
    """The index of the last `recommend` of a snapshot. What has a default may be missing in files of earlier releases.

    Usage is the weighted maximum of a broker's resources, a ratio.
    """

    SCHEMA: ClassVar = "pulsar-advisor/recommendation/1"
    MADE_BY: ClassVar = "recommend"

    proposer: str | None = None
    """`recommend --as`, or the user of the DAG run."""
    view: View
    combinations: tuple[Combination, ...]
    advice: Advice
    goal_outcome: GoalOutcome | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    coverage: Coverage = Coverage()
    refusals: tuple[Refusal, ...] = ()
    foresight: Foresight | None = None
    noise_floor: NoiseFloor = NoiseFloor(DEFAULT_RATIO, "default")
    lowest_maximum_ratio: float | None = None
    """No moves of whole bundles bring the busiest broker below it."""
    model_errors: ModelErrors | None = None
    trials: tuple[Trial, ...] = ()
    options: tuple[Option, ...] | None = None
    """What could be done, best first."""
    settings: Mapping[str, PlannedSetting] | None = None
    """Those that the plans record."""

    @property
    def advised(self) -> Combination | None:
        """The combination whose plan is advised."""
        digest = self.advice.digest
        return None if digest is None else next((row for row in self.combinations if row.digest == digest), None)

    @property
    def is_unjudged(self) -> bool:
        """Whether nothing is advised, and too little could be judged to say that nothing needs doing."""
        return self.advice.plan is None and (self.coverage.decides or none_judged(self.combinations, self.refusals))

    @property
    def imbalance_ratio(self) -> float | None:
        """Standard deviation of the brokers' usage before any plan; None if no combination knows it."""
        spreads = (row.standard_deviation_before for row in self.combinations)
        return next((spread for spread in spreads if spread is not None), None)


class RunResult(Recommendation):
    """The recommendation of a `run`, and the place of its report."""

    report: str
