"""What the documents of the advisor hold, in types: `docs/generate.py` writes a JSON Schema of each to docs/schemas/.

Most are the product's own types. Documents that stages assemble from parts are declared here; tests hold real ones to
their schemas.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NotRequired

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from pulsar_advisor.diagnosis.findings import Row
from pulsar_advisor.documents.apply_result import ApplyResult
from pulsar_advisor.documents.audit_result import AuditResult
from pulsar_advisor.documents.ledger_head import LedgerHead
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.plan_calls import PlanCalls
from pulsar_advisor.documents.recommendation import Recommendation, Trial
from pulsar_advisor.documents.simulation import SimulationResult
from pulsar_advisor.documents.snapshot_index import SnapshotIndex
from pulsar_advisor.documents.tables_result import TablesResult
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.documents.verify_result import VerifyResult
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.lint.judge import LintFinding
from pulsar_advisor.model.configuration.kinds import LoadManagerKind
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.monitor.tables import OverallRow, PlannedUsage
from pulsar_advisor.planning.questions.explain import Explanation
from pulsar_advisor.planning.questions.restart_order import RestartOrder
from pulsar_advisor.planning.questions.scale import Scale
from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.snapshots.retention import Pruned
from pulsar_advisor.snapshots.summary import SnapshotSummary


@dataclass(frozen=True, kw_only=True)
class ExplanationOfSnapshot(Explanation):
    """An explanation, what it is based on, and what Pulsar itself would do, switches included."""

    cluster: str
    snapshot: str
    manifest_sha256: str
    view: Literal["fresh", "published"]
    what_if: dict[str, str]
    pulsar: str


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


DOCUMENTS: Final[Mapping[str, Any]] = {
    "apply-result/3": ApplyResult,
    "approval-policy/1": ApprovalPolicy,
    "audit-result/1": AuditResult,
    "broker-tables/1": Load,
    "doctor/1": Examined,
    "explanation/1": ExplanationOfSnapshot,
    "ledger-head/1": LedgerHead,
    "plan-calls/1": PlanCalls,
    "plan/5": Plan,
    "prune-result/1": Pruned,
    "raw-snapshot/1": Manifest,
    "recommendation/1": Recommendation,
    "report/1": ReportPage,
    "restart-order/1": RestartOrder,
    "scale/2": Scale,
    "simulation/1": SimulationResult,
    "snapshot-index/1": SnapshotIndex,
    "snapshot-summary/1": SnapshotSummary,
    "tables-result/1": TablesResult,
    "validation-result/2": Validation,
    "verify-result/1": VerifyResult,
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
