"""What the documents of the advisor hold, in types: `docs/generate.py` writes a JSON Schema of each to docs/schemas/.

Most are the product's own types. Documents that stages assemble from parts are declared here; tests hold real ones to
their schemas.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from pulsar_advisor.diagnosis.findings import Row
from pulsar_advisor.execution.policy import ApprovalPolicy
from pulsar_advisor.execution.verify import BundleCheck, UsageCheck
from pulsar_advisor.lint.judge import LintFinding
from pulsar_advisor.model.kinds import LoadManagerKind
from pulsar_advisor.model.plan import Plan, PlannedSetting
from pulsar_advisor.monitor.tables import OverallRow, PlannedUsage
from pulsar_advisor.planning.compare import Score
from pulsar_advisor.planning.coverage import Coverage
from pulsar_advisor.planning.explain import Explanation
from pulsar_advisor.planning.findings import Finding
from pulsar_advisor.planning.fitness import Refusal
from pulsar_advisor.planning.goal_outcome import GoalOutcome
from pulsar_advisor.planning.model_errors import ModelErrors
from pulsar_advisor.planning.noise import NoiseFloor
from pulsar_advisor.planning.options import Option
from pulsar_advisor.planning.restart_order import RestartOrder
from pulsar_advisor.planning.scale import Scale
from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.simulation.foresight import CycleSeen
from pulsar_advisor.snapshots.retention import Pruned
from pulsar_advisor.snapshots.summary import SnapshotSummary
from pulsar_advisor.storage.shapes import Verdict
from pulsar_advisor.tables.schemas import SIMULATED_SCORES, Table

_TYPES: Final[Mapping[str, Any]] = {"string": str, "int": int, "bigint": int, "double": float, "boolean": bool}


def _row_of(table: Table) -> Any:
    """A row of a table as JSON; columns that are null may be absent."""
    return TypedDict(
        table.name,
        {
            column.name: NotRequired[
                Annotated[_TYPES[column.type] | None, Field(description=re.sub(r"[`\\]", "", column.comment))]
            ]
            for column in table.columns
        },
    )


SimulationScore = _row_of(SIMULATED_SCORES)


class File(TypedDict):
    """One raw file."""

    path: str
    surface: str
    broker: str | None
    rows: int
    bytes: int
    sha256: str


class Identity(TypedDict):
    """What distinguishes clusters."""

    cluster_name: str
    broker_ids: list[str]


class Sources(TypedDict):
    """Where the snapshot was read."""

    admin_urls: list[str]
    zookeeper: bool
    service_url: NotRequired[bool]


class Read(TypedDict):
    """The reads of one surface from one target."""

    surface: str
    target: str
    started_at_ms: int
    finished_at_ms: int
    requests: int
    bytes: int
    status: int | None


class Missing(TypedDict):
    """What could not be read, and why."""

    surface: str
    broker: str | None
    reason: str
    namespace: NotRequired[str | None]


class Failure(TypedDict):
    """A document that was received and could not be decoded."""

    surface: str
    broker: str | None
    error: str
    size: NotRequired[int]
    sha256: NotRequired[str]


class RawSnapshot(TypedDict):
    """A raw snapshot's manifest, written last."""

    cluster: str
    snapshot: str
    tool_version: str
    started_at_ms: int
    finished_at_ms: int
    skew_ms: Annotated[int, Field(description="Between the first and the last read of what moves with load.")]
    identity: Identity
    sources: Sources
    pulsar_version: str | None
    pulsar_versions: dict[str, str]
    load_manager: LoadManagerKind
    load_managers: dict[str, LoadManagerKind]
    leader: str | None
    leader_unloads: NotRequired[
        Annotated[int | None, Field(description="Bundles that a Modular leader has unloaded since it started.")]
    ]
    files: list[File]
    reads: list[Read]
    missing: list[Missing]
    failures: list[Failure]
    incomplete_brokers: list[str]
    moved_bundles: list[str]
    read_again: NotRequired[list[str]]


class TablesResult(TypedDict):
    """The tables that `normalize` wrote."""

    cluster: str
    snapshot: str
    manifest_sha256: str
    earlier_snapshot: str | None
    problems: int
    tables: Annotated[dict[str, int], Field(description="Table -> its number of rows.")]


class Check(TypedDict):
    """One check and its result."""

    check: str
    title: str
    severity: Literal["critical", "warning", "info"]
    scope: str
    effect: Annotated[
        Literal["stop", "confine", "doubt"],
        Field(description="What becomes of the failing rows, or stop: the snapshot must not be used."),
    ]
    about: Annotated[list[str] | None, Field(description="Inputs of decisions that the check is about.")]
    reason: str
    action: str
    success: bool
    failed_rows: int
    examples: list[dict[str, Any]]
    excluded: Annotated[list[str], Field(description="What is set aside because of it.")]
    concerned: Annotated[list[str] | None, Field(description="What it casts doubt on; null if too many to list.")]
    error: Annotated[str | None, Field(description="Why the check could not be evaluated.")]


class ValidationResult(TypedDict):
    """Whether a snapshot can be trusted, check by check."""

    cluster: str
    snapshot: str
    manifest_sha256: str
    suites_sha256: str
    success: bool
    results: list[Check]


class Advice(TypedDict):
    """The advised plan, if any, and the advice in words."""

    plan: str | None
    digest: str | None
    sentence: str


SwitchedOffBy = Annotated[
    list[str], Field(description="Switches that keep it from shedding; the simulations take them as on.")
]


class Foresight(TypedDict):
    """What the cluster's own balancer does next, by itself and after the advised plan."""

    cycles: int
    error: str | None
    own: SimulationScore | None
    acting: list[CycleSeen]
    plan: dict[str, Any] | None
    switched_off_by: NotRequired[SwitchedOffBy]


class Trial(TypedDict):
    """A change of settings that would end a violation of lint's, and how the cluster ends with it and without it."""

    change: dict[str, str]
    error: str | None
    today: NotRequired[SimulationScore | None]
    verdict: NotRequired[
        Annotated[
            Literal["better", "same", "worse"] | None,
            Field(description="Beside today; lint proposes what is better. Null if one of both can't be simulated."),
        ]
    ]
    score: SimulationScore | None
    switched_off_by: NotRequired[
        Annotated[
            list[str],
            Field(description="Switches that keep Pulsar from shedding even then; taken as on."),
        ]
    ]


@dataclass(frozen=True, kw_only=True)
class Combination(Score):
    """A score, and the combination that is no worse in any figure and better in one."""

    dominated_by: str | None


@dataclass(frozen=True, kw_only=True)
class JudgedCoverage(Coverage):
    """What validation set aside, in numbers and in words."""

    sentence: str = field()
    decides: Annotated[bool, Field(description="Whether too little could be judged to answer for the cluster.")] = (
        field()
    )
    why: Annotated[str, Field(description="What comes before any answer then; otherwise empty.")] = field()


@dataclass(frozen=True, kw_only=True)
class WordedRefusal(Refusal):
    """A strategy that can't judge the cluster, in words too."""

    sentence: str = field()


class Recommendation(TypedDict):
    """The index of the last `recommend` of a snapshot."""

    cluster: str
    snapshot: str
    manifest_sha256: str
    proposer: str | None
    view: Literal["fresh", "published"]
    combinations: list[Combination]
    advice: Advice
    goal_outcome: NotRequired[GoalOutcome | None]
    findings: list[Finding]
    notes: list[str]
    coverage: JudgedCoverage
    refusals: list[WordedRefusal]
    foresight: Foresight
    noise_floor: NoiseFloor
    lowest_maximum_ratio: float | None
    model_errors: NotRequired[ModelErrors | None]
    trials: list[Trial]
    options: list[Option]
    settings: Annotated[dict[str, PlannedSetting], Field(description="Those that the plans record.")]


class Simulated(TypedDict):
    """What was simulated."""

    what_if: dict[str, str]
    grid: dict[str, list[str]]
    seed: int
    seeds: int
    cycles: int
    load: float
    noise: float
    replay: int


class Strategies(TypedDict):
    """A shedder and a placement strategy."""

    shedder: str
    placement: str


class SimulationResult(TypedDict):
    """How simulations end, one row for each."""

    cluster: str
    snapshot: str
    manifest_sha256: str
    view: Literal["fresh", "published"]
    model: Literal["base_load"]
    request: Simulated
    interval_minutes: int
    own: Strategies
    switched_off_by: NotRequired[SwitchedOffBy]
    scores: list[SimulationScore]


@dataclass(frozen=True, kw_only=True)
class ExplanationOfSnapshot(Explanation):
    """An explanation, what it is based on, and what Pulsar itself would do, switches included."""

    cluster: str
    snapshot: str
    manifest_sha256: str
    view: Literal["fresh", "published"]
    what_if: dict[str, str]
    pulsar: str


class Call(TypedDict):
    """The request of a step."""

    method: str
    path: str
    query: dict[str, str]
    body: Any


class AppliedStep(TypedDict):
    """One step and its result."""

    id: str
    action: Literal["unload", "split"]
    bundle: str
    state: str
    detail: str
    request: Call


class ExportedStep(TypedDict):
    """One call of a plan, and who owns what before and after it."""

    id: str
    after: Annotated[list[str], Field(description="The steps that must be done before it.")]
    action: Literal["unload", "split"]
    reason: str
    owner_before: Annotated[dict[str, str], Field(description="Bundle -> broker.")]
    call: Call
    owner_after: Annotated[dict[str, str | None], Field(description="Bundle -> broker; null where Pulsar chooses.")]


class PlanCalls(TypedDict):
    """A plan as a list of calls, for tools that make them."""

    cluster: str
    cluster_name: str
    digest: str
    snapshot: str
    to_mind: Annotated[list[str], Field(description="What an approver would be shown.")]
    unloads: list[ExportedStep]
    splits_and_after: Annotated[list[ExportedStep], Field(description="What can't be undone.")]


class ApplyOutcome(TypedDict):
    """How a run of `apply` ended, step by step."""

    outcome: Literal["done", "nothing_to_do", "dry_run", "partial", "parked"]
    digest: str
    run: int | None
    sentence: str
    steps: list[AppliedStep]
    undoable_steps: list[str]
    refusals: list[str]
    still_off: Annotated[
        list[str], Field(description="Settings that a run switched off and that could not be restored: exit code 8.")
    ]
    ledger_head: NotRequired[str]
    goal_outcome: NotRequired[GoalOutcome | None]


class Verification(TypedDict):
    """Whether the cluster is as the plan predicted."""

    digest: str
    run: int
    snapshot: str
    as_predicted: bool
    deviations: list[str]
    steps_not_confirmed: list[str]
    usage_judged: bool
    usage_tolerance_ratio: float
    bundles: list[BundleCheck]
    brokers: list[UsageCheck]
    ledger_head: NotRequired[str]


class Audit(TypedDict):
    """Whether the ledger is as it was written."""

    intact: bool
    head: str
    findings: list[str]
    known_heads: NotRequired[int]
    newest_known_head: NotRequired[str | None]


class LedgerHead(TypedDict):
    """A head of a ledger that is kept elsewhere."""

    head: str
    kept_at: str


class Examined(TypedDict):
    """Whether a capture made now would produce a usable snapshot."""

    cluster_name: str
    fit: bool
    reachable: bool
    rows: list[Row]


class BrokerTables(TypedDict):
    """The tables of one broker: label -> figures by name."""

    broker: str
    load_manager: LoadManagerKind
    rows: dict[str, dict[str, float | int | None]]


class Overall(TypedDict):
    """The table over all brokers."""

    brokers: list[OverallRow]
    total: OverallRow


class Unknown(TypedDict):
    """A broker whose load is unknown."""

    broker: str
    reason: str


class Load(TypedDict):
    """The tables of `brokers`: each broker's, and the one over all of them."""

    where: str
    read_at_ms: int
    brokers: list[BrokerTables]
    overall: Overall
    missing: list[Unknown]
    planned: NotRequired[PlannedUsage | None]
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class FindingWithEffect(LintFinding):
    """A violated rule, and what the cluster's own balancer would do with the proposed change."""

    effect: Trial | None


class IndexedSnapshot(TypedDict):
    """A snapshot and what became of it."""

    id: str
    verdict: Verdict
    sentence: str
    failed_checks: Annotated[int | None, Field(description="Null: not validated yet.")]
    imbalance_ratio: Annotated[
        float | None, Field(description="Standard deviation of the brokers' usage; null: not known yet.")
    ]
    has_report: bool


class SnapshotIndex(TypedDict):
    """The newest snapshots of a cluster, newest first: an index for lists, which may be removed at any time."""

    rows: list[IndexedSnapshot]


DOCUMENTS: Final[Mapping[str, Any]] = {
    "apply-result/3": ApplyOutcome,
    "approval-policy/1": ApprovalPolicy,
    "audit-result/1": Audit,
    "broker-tables/1": Load,
    "doctor/1": Examined,
    "explanation/1": ExplanationOfSnapshot,
    "ledger-head/1": LedgerHead,
    "plan-calls/1": PlanCalls,
    "plan/5": Plan,
    "prune-result/1": Pruned,
    "raw-snapshot/1": RawSnapshot,
    "recommendation/1": Recommendation,
    "report/1": ReportPage,
    "restart-order/1": RestartOrder,
    "scale/2": Scale,
    "simulation/1": SimulationResult,
    "snapshot-index/1": SnapshotIndex,
    "snapshot-summary/1": SnapshotSummary,
    "tables-result/1": TablesResult,
    "validation-result/2": ValidationResult,
    "verify-result/1": Verification,
}
"""Schema name and version, without `pulsar-advisor/` -> the type of the document without its field `schema`."""


class _Generated(GenerateJsonSchema):
    """JSON Schema without a title for each field: it would repeat the field's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document. Fields that it doesn't name are allowed: more may be added."""
    generated = TypeAdapter(DOCUMENTS[name]).json_schema(mode="serialization", schema_generator=_Generated)
    properties, required = dict(generated["properties"]), list(generated.get("required", ()))
    for own in ("schema", "schema_name"):
        properties.pop(own, None)
    if name.startswith("plan/"):
        properties["digest"] = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
        properties["boundaries"] = {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}
        generated["$defs"]["Expectation"]["properties"]["boundaries"] = {"type": "integer", "minimum": 0}
        required += ["boundaries", "digest"]
    identity = f"pulsar-advisor/{name}"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": identity,
        **_open({key: part for key, part in generated.items() if key not in ("properties", "required")}),
        "properties": {"schema": {"const": identity}, **_open(properties)},
        "required": ["schema", *(field for field in required if field not in ("schema", "schema_name"))],
    }


def _open(part: Any) -> Any:
    """The same schema without refusals of other fields."""
    if isinstance(part, dict):
        return {
            key: _open(value) for key, value in part.items() if not (key == "additionalProperties" and value is False)
        }
    return [_open(item) for item in part] if isinstance(part, list) else part
