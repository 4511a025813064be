"""A plan: ordered steps, each with preconditions and predicted effects, protected by a digest.

Canonical JSON is RFC 8785; the digest is SHA-256 of it without the digest field, so the same snapshot and inputs give
the same bytes on any machine. Personal names and timestamps are not part of a plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal, NamedTuple, TypedDict, get_args

import msgspec
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from pulsar_advisor.model.configuration.resolved_settings import WHAT_IF
from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.model.plans.canonical_json import CanonicalizationError, Json, joined, members
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.strategy.entry import combination
from pulsar_advisor.model.text.problems import problems

_Schema = Literal[
    "pulsar-advisor/plan/1",
    "pulsar-advisor/plan/2",
    "pulsar-advisor/plan/3",
    "pulsar-advisor/plan/4",
    "pulsar-advisor/plan/5",
]
"""Those that are read; the last one is written. Plans of the first one predict by the `proportional` model, without
ranges; those of the first two have no goal; each step of the first three repeats all boundaries of its namespace; none
of the first four has the range of the busiest broker."""
_SCHEMAS: Final[tuple[_Schema, ...]] = get_args(_Schema)
_WITH_ALL_BOUNDARIES: Final = _SCHEMAS[:3]

SHORT: Final = 8
"""Digits of a digest that people read and type."""

_EXPECTED: Final = "name a plan file that `recommend` wrote"

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
    """Low end of the range in which the busiest broker's usage is expected; None in plans of earlier schemas, too."""
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
    """Intermediate results of the shedder, by name: thresholds, means, bounds; null where not finite."""
    caveats: tuple[str, ...] = ()
    """A sentence each: what of the goal isn't reached and what would help, or what is no longer safe afterwards."""


class Plan(_Part):
    """Ordered steps, what each expects and predicts, and a digest (`docs/formats.md`, Plan)."""

    SCHEMA: ClassVar = "pulsar-advisor/plan/5"

    schema_name: _Schema
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


class Sealed(NamedTuple):
    """A plan as it is written and recorded."""

    content: bytes
    """Its canonical JSON with its digest."""
    digest: str
    """`sha256:` and that of the JSON without it."""
    cluster: str
    cluster_name: str
    snapshot: str


def file_name(plan: Plan, digest: str) -> str:
    """`<shedder>--<placement>--<first 12 digits of the digest>.json`; without a placement strategy, without it."""
    digits = digest.removeprefix("sha256:")[:12]
    return f"{'--'.join(part for part in (plan.shedder, plan.placement, digits) if part)}.json"


class _ExpectDocument(TypedDict):
    boundaries: list[str] | int


class _StepDocument(TypedDict):
    """The part of a step's JSON that is written in another form."""

    expect: _ExpectDocument


def _document(plan: Plan) -> Json:
    """The plan as JSON. Fields that an earlier release did not write are omitted, so that its digest stays valid."""
    document = plan.model_dump(mode="json", exclude_unset=True)
    if plan.schema_name not in _WITH_ALL_BOUNDARIES:
        document["boundaries"] = _boundaries_taken_out(document["steps"])
    return {"schema": document.pop("schema_name"), **document}


def _boundaries_taken_out(steps: Sequence[_StepDocument]) -> list[list[str]]:
    """The distinct lists of boundaries that the steps expect; each step keeps only the position of its list.

    A namespace has hundreds of boundaries, and a large plan thousands of steps.
    """
    positions: dict[tuple[str, ...], int] = {}
    for step in steps:
        expect = step["expect"]
        assert isinstance(expect["boundaries"], list), "as a plan has them"
        expect["boundaries"] = positions.setdefault(tuple(expect["boundaries"]), len(positions))
    return list(map(list, positions))


def _boundaries_put_back(steps: Sequence[_StepDocument], lists: Sequence[list[str]]) -> list[_StepDocument]:
    """The reverse. Raises `LookupError` or `TypeError` if a step's position isn't that of a list."""

    def own(position: list[str] | int) -> list[str]:
        if not isinstance(position, int):
            raise TypeError(f"{position} is no position")
        return lists[position]

    return [{**step, "expect": {**step["expect"], "boundaries": own(step["expect"]["boundaries"])}} for step in steps]


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _sealed(document: Mapping[str, JsonValue]) -> tuple[bytes, str]:
    """The canonical JSON of a plan with its digest, and the digest."""
    content = members(document)
    digest = _digest(joined(content))
    return joined({**content, **members({"digest": digest})}), digest


def seal(plan: Plan) -> Sealed:
    """The plan as it is written. A thousand steps take a tenth of a second."""
    return Sealed(*_sealed(_document(plan)), plan.cluster, plan.identity.cluster_name, plan.snapshot)


class _NamedCluster(msgspec.Struct):
    cluster_name: str


class _Head(msgspec.Struct):
    cluster: str
    identity: _NamedCluster
    snapshot: str


def is_sealed_as(content: bytes, digest: str) -> bool:
    """Whether these are the bytes of the plan with this digest; they are not parsed."""
    # No text can hold its own digest, so this is the member.
    return _digest(content.replace(f',"digest":"{digest}"'.encode(), b"", 1)) == digest


def sealed_before(content: bytes, digest: str) -> Sealed:
    """A plan that was sealed, from its file; its steps, often many megabytes, are not read.

    Raises `Refused` unless its digest is this one, `StorageError` if it holds no plan.
    """
    if not is_sealed_as(content, digest):
        raise Refused(f"the file does not hold the plan {digest}: it was changed; make it again with `recommend`")
    try:
        head = msgspec.json.decode(content, type=_Head)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"the file with the digest {digest} holds no plan: {error}") from error
    return Sealed(content, digest, head.cluster, head.identity.cluster_name, head.snapshot)


def digest_of(plan: Plan) -> str:
    """The plan's digest."""
    return seal(plan).digest


def short(digest: str) -> str:
    """The first digits of a digest, as people read and type it: `c8b31b82`."""
    return digest.removeprefix("sha256:")[:SHORT]


def title_of(shedder: str, placement: str, undoes: str | None) -> str:
    """What made a plan without a goal: its strategies, or the plan that it undoes, by its digest."""
    return f"undo of {short(undoes)}" if undoes else combination(shedder, placement)


def dump_plan(plan: Plan) -> bytes:
    """Canonical JSON of the plan with its digest."""
    return seal(plan).content


_TOO_DEEP: Final = "it is nested too deeply"


def load_plan(content: bytes) -> Plan:
    """Parse a plan file of this release or an earlier one.

    Raises `StorageError` if it isn't a plan of a known version, `Refused` if its digest doesn't match its content or
    its bytes aren't canonical: a duplicate key could show people another plan than the one applied.
    """
    try:
        document = json.loads(content)
        digest = document.pop("digest")
        schema = document["schema"]
    except (ValueError, RecursionError) as error:
        raise StorageError(f"this is not a plan: it is not JSON ({error}); {_EXPECTED}") from error
    except KeyError as error:
        raise StorageError(f"this is not a plan: it has no {error}; {_EXPECTED}") from error
    except (AttributeError, TypeError) as error:
        raise StorageError(f"this is not a plan: it is not a JSON object; {_EXPECTED}") from error
    if schema not in _SCHEMAS:
        raise StorageError(f"plan schema '{schema}' is not known here; this release reads {' and '.join(_SCHEMAS)}")
    fields = {name: value for name, value in document.items() if name != "schema"}
    try:
        if schema not in _WITH_ALL_BOUNDARIES:
            fields["steps"] = _boundaries_put_back(fields["steps"], fields.pop("boundaries"))
        plan = Plan.model_validate({"schema_name": schema, **fields})
        # The same bytes have the same digest, and are canonical.
        if dump_plan(plan) == content:
            return plan
        reason = "a value in it is of another type than its field"
    except (LookupError, TypeError):
        reason = "a step names boundaries that it doesn't hold"
    except ValidationError as error:
        too_deep = any(each["type"].startswith("recursion_") for each in error.errors(include_input=False))
        reason = _TOO_DEEP if too_deep else problems(error)[0]
    except CanonicalizationError as error:
        reason = f"it has no canonical form: {error}"
    except (RecursionError, ValueError):  # pydantic's limit of depth is a plain ValueError
        reason = _TOO_DEEP
    _refuse_changed(content, document, digest)
    raise StorageError(f"this plan can't be read: {reason}")


def _refuse_changed(content: bytes, document: Mapping[str, JsonValue], digest: str) -> None:
    """Raise `Refused` if a file isn't what was written, whatever else is wrong with it."""
    try:
        canonical, found = _sealed(document)
    except CanonicalizationError:
        return  # that is what is wrong with it
    if found != digest:
        raise Refused(
            f"the plan's content has digest {found}, but it claims {digest}: it was changed after it was made; "
            "make it again with `recommend`"
        )
    if content != canonical:
        raise Refused(
            "the plan's file is not in canonical form (RFC 8785): it was written again, or holds a key twice; make it "
            "again with `recommend`"
        )
