"""A plan: ordered steps, each with preconditions and predicted effects.

Personal names and timestamps are not part of it: the same snapshot and inputs give the same plan on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from pulsar_advisor.model.configuration.resolved_settings import WHAT_IF
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.names import title_of

Schema = Literal[
    "pulsar-advisor/plan/1",
    "pulsar-advisor/plan/2",
    "pulsar-advisor/plan/3",
    "pulsar-advisor/plan/4",
    "pulsar-advisor/plan/5",
]
"""Those that are read; the last one is written. Plans of the first one predict by the `proportional` model, without
ranges; those of the first two have no goal; each step of the first three repeats all boundaries of its namespace; none
of the first four has the range of the busiest broker."""

Confidence = Literal["high", "medium", "low"]
CONFIDENCES: Final[tuple[Confidence, ...]] = ("low", "medium", "high")
"""The grades, the least first."""
Action = Literal["unload", "split"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Identity(_Part):
    """What distinguishes clusters: Pulsar's cluster name and the ids of its brokers, sorted."""

    cluster_name: str
    broker_ids: tuple[str, ...]


class PlanInputs(_Part):
    """SHA-256 (hex) of the manifest and of the validation result the plan was made from."""

    manifest_sha256: str
    validation_sha256: str


class PlannedSetting(_Part):
    """A setting as the strategies saw it, and the origin of its value."""

    value: str
    origin: str


class Expectation(_Part):
    """What a step must find on the cluster before it is sent."""

    owner: str
    boundaries: tuple[str, ...]
    """Boundaries of the whole namespace, text `0x%08x`, as a broker returns them."""
    topics: int
    msg_rate_per_s: float | None
    throughput_bytes_per_s: float | None


class StepPrediction(_Part):
    """Weighted maximum usage (0..1) of the brokers a step touches, after the step; null where not finite."""

    brokers: Mapping[str, float | None]


class Doubt(_Part):
    """Why a step is less sure, and the highest confidence that this leaves."""

    confidence: Literal["medium", "low"]
    sentence: str


class Step(_Part):
    """One call to the cluster: an unload of a bundle or a split of it."""

    id: str
    after: tuple[str, ...]
    action: Action
    namespace: str
    bundle: str
    """Range text of the bundle."""
    source: str
    destination: str | None
    """None for a split, and where the cluster keeps no destination: the Simple load manager, Pulsar below 3.0."""
    algorithm: str | None
    boundaries: tuple[str, ...]
    children: tuple[str, ...]
    reason: str
    executable: bool
    not_executable_because: str | None
    confidence: Confidence
    expect: Expectation
    predicted: StepPrediction
    failed_checks: tuple[str, ...] = ()
    """Checks in the plan's `rests_on` for its action that failed for a row the step touches; the others passed."""
    doubts: tuple[Doubt, ...] = ()
    """Why the confidence is not higher, most serious first; empty where it is high."""

    @property
    def bundle_name(self) -> str:
        """`tenant/namespace/0x..._0x...`."""
        return f"{self.namespace}/{self.bundle}"


class BrokerForecast(_Part):
    """One broker before or after the plan. Usage: weighted maximum, 0..1; null where not finite."""

    usage_ratio: float | None
    lowest_usage_ratio: float | None = None
    """Low end of the range in which the usage is expected; None in plans of the first schema, too."""
    highest_usage_ratio: float | None = None
    resource: str | None = None
    """The resource whose weighted share `usage_ratio` is, by Pulsar's name; None in plans of earlier schemas, too."""
    msg_rate_per_s: float | None
    throughput_bytes_per_s: float | None
    bundles: int


class Forecast(_Part):
    """All brokers before or after the plan."""

    brokers: Mapping[str, BrokerForecast]
    maximum_ratio: float | None
    lowest_maximum_ratio: float | None = None
    """The greatest of the brokers' low ends, as `highest_maximum_ratio` is of their high ends; None in plans of earlier
    schemas, too."""
    highest_maximum_ratio: float | None = None
    mean_ratio: float | None
    standard_deviation_ratio: float | None


class PlannedBase(_Part):
    """The base CPU usage (0..1) of one broker, as far as it is known, and how it is known."""

    lowest_ratio: float | None
    ratio: float | None
    highest_ratio: float | None
    origin: Literal["history", "peers", "default", "least_loaded"]
    """The last one in plans of earlier schemas only."""


class Prediction(_Part):
    """The cluster before and after all executable steps, by a named model."""

    model: Literal["proportional", "base_load"]
    before: Forecast
    after: Forecast
    base: Mapping[str, PlannedBase] = {}
    """By broker, for the model `base_load`: what stays when all its bundles leave."""


class PlanDecision(_Part):
    """When the shedder acts on constant figures, why it does not, and what Pulsar would do, switches included."""

    acts_in_cycle: int | None
    why_nothing: str | None
    would_pulsar_act: str
    figures: Mapping[str, int | float | str | None] = {}
    """Intermediate results of the shedder, by name: thresholds, means, bounds; null where not finite.

    With a goal, `excluded`, `unfit`, `not_allowed` and `without_room` count the bundles that stay for that reason.
    """
    caveats: tuple[str, ...] = ()
    """A sentence each: what of the goal isn't reached and what would help, or what is no longer safe afterwards."""


class Plan(_Part):
    """Ordered steps, what each expects and predicts, and a digest (`docs/formats.md`, Plan)."""

    SCHEMA: ClassVar[Schema] = "pulsar-advisor/plan/5"

    schema_name: Schema
    cluster: str
    identity: Identity
    snapshot: str
    inputs: PlanInputs
    pulsar_version: str
    load_manager: Literal["modular", "simple", "extensible"]
    view: Literal["fresh", "published"]
    shedder: str
    """The shedder, the plan kind of the goal, the split decider of a plan of splits, or `undo`."""
    placement: str
    """The placement strategy, or `undo`; empty in a plan of splits, and with a goal, which names its destinations."""
    settings: Mapping[str, PlannedSetting]
    limits: Mapping[str, int | float | tuple[str, ...] | None]
    seed: int
    memory: Mapping[str, JsonValue]
    steps: tuple[Step, ...]
    predicted: Prediction
    decision: PlanDecision
    rests_on: Mapping[Action, tuple[str, ...]] = {}
    """The checks that every step of an action rests on, by name, sorted: those about the inputs of its decision."""
    goal: Goal | None = None
    """What an operator wanted; None in a plan without a goal."""

    @property
    def remembered(self) -> tuple[str, ...]:
        """The earlier snapshots that its strategies learnt from."""
        snapshots = self.memory.get("snapshots")
        return tuple(map(str, snapshots)) if isinstance(snapshots, list | tuple) else ()

    @property
    def title(self) -> str:
        """What made it: `drain broker-3:8080`, `ThresholdShedder with LeastLongTermMessageRate`, `undo of c8b31b82`."""
        if self.goal is not None:
            return self.goal.title
        undoes = self.memory.get("undoes")
        return title_of(self.shedder, self.placement, undoes if isinstance(undoes, str) else None)

    @property
    def executable_steps(self) -> tuple[Step, ...]:
        """The steps that may be sent, in order."""
        return tuple(step for step in self.steps if step.executable)

    @property
    def unloads(self) -> tuple[Step, ...]:
        """Those of them that move a bundle: without one, load stays where it is."""
        return tuple(step for step in self.executable_steps if step.action == "unload")

    @property
    def what_if(self) -> Mapping[str, str]:
        """The settings that its proposer assumed in place of the cluster's own, by Pulsar's key."""
        return {key: setting.value for key, setting in self.settings.items() if setting.origin == WHAT_IF}
