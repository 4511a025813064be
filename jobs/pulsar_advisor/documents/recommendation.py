"""What `recommend` says of a snapshot: every combination with its plan's score, the advice, and what speaks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, Self

from pulsar_advisor.documents.document import Document, Part
from pulsar_advisor.documents.simulation import Ending, SimulatedScore
from pulsar_advisor.model.configuration.kinds import View
from pulsar_advisor.model.plans.plan import PlannedSetting
from pulsar_advisor.planning.advice import coverage
from pulsar_advisor.planning.advice.compare import Score
from pulsar_advisor.planning.advice.findings import Finding
from pulsar_advisor.planning.advice.options import Option
from pulsar_advisor.planning.kinds.goal_outcome import GoalOutcome
from pulsar_advisor.planning.proposals import fitness
from pulsar_advisor.planning.usage.model_errors import ModelErrors
from pulsar_advisor.planning.usage.noise import DEFAULT_RATIO, NoiseFloor
from pulsar_advisor.simulation import foresight, trials
from pulsar_advisor.simulation.foresight import CycleSeen
from pulsar_advisor.simulation.trials import Verdict


@dataclass(frozen=True, kw_only=True)
class Combination(Score):
    """A shedder with a placement strategy: the score of its plan."""

    not_executable: int = 0
    dominated_by: str | None = None
    """The combination that is no worse in any figure and better in one, as `shedder with placement`."""


class Advice(Part):
    """The advised plan, if any, and the advice in words."""

    plan: str | None
    digest: str | None
    sentence: str


class Coverage(Part):
    """How much of the load could be judged, and what was set aside, in numbers and in words; see `planning.coverage`.

    The defaults are what earlier releases didn't say.
    """

    judged_ratio: float | None = None
    judged_msg_rate_ratio: float | None = None
    unmeasured_bundles: int = 0
    unmeasured_ratio: float = 0.0
    excluded_brokers: tuple[str, ...] = ()
    excluded_namespaces: tuple[str, ...] = ()
    excluded_bundles: int = 0
    busiest: str = ""
    set_aside_by: tuple[str, ...] = ()
    sentence: str | None = None
    decides: bool = False
    """Whether too little could be judged to answer for the cluster."""
    why: str = ""
    """What comes before any answer then; otherwise empty."""

    @classmethod
    def of(cls, judged: coverage.Coverage) -> Self:
        """The same with its sentences."""
        return cls(**asdict(judged), sentence=judged.sentence, decides=judged.decides, why=judged.why)


class Refusal(Part):
    """A strategy that can't judge the cluster, and the input it lacks."""

    strategy: str
    role: str
    missing: str
    reason: str
    sentence: str

    @classmethod
    def of(cls, refusal: fitness.Refusal) -> Self:
        """The same with its sentence."""
        return cls(**asdict(refusal), sentence=refusal.sentence)


class Undone(Ending):
    """What the cluster's own balancer does with the bundles of the advised plan once it has been carried out."""

    plan_bundles: int
    moved_again: int
    moved_back: int
    first_cycle: int | None

    @classmethod
    def by(cls, found: foresight.Interference) -> Self:
        """The interference that was simulated."""
        return cls.of(
            found.score,
            plan_bundles=found.plan_bundles,
            moved_again=found.moved_again,
            moved_back=found.moved_back,
            first_cycle=found.first_cycle,
        )


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


class Trial(Part):
    """A change of settings that would end a violation of lint's, and how the cluster ends with it and without it."""

    change: Mapping[str, str]
    error: str | None
    today: Ending | None = None
    score: Ending | None
    verdict: Verdict | None = "better"
    """Beside today; null if one of both can't be simulated. Earlier releases compared nothing and proposed all."""
    switched_off_by: tuple[str, ...] = ()
    """Switches that keep Pulsar from shedding even then; taken as on."""

    @classmethod
    def of(cls, trial: trials.Trial) -> Self:
        """A trial that was simulated."""
        return cls(
            change=trial.change,
            error=trial.error,
            today=Ending.of(trial.today) if trial.today else None,
            score=Ending.of(trial.score) if trial.score else None,
            verdict=trial.verdict,
            switched_off_by=trial.switched_off_by,
        )

    @property
    def is_proposed(self) -> bool:
        """Whether the change ends better than today."""
        return self.verdict == "better"


class Recommendation(Document):
    """The index of the last `recommend` of a snapshot. What has a default may be missing in files of earlier releases.

    Usage is the weighted maximum of a broker's resources, a ratio.
    """

    SCHEMA: ClassVar = "pulsar-advisor/recommendation/1"
    MADE_BY: ClassVar = "recommend"

    cluster: str
    snapshot: str
    manifest_sha256: str
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
