"""The documents of the advisor. `docs/generate.py` writes the JSON Schema of each type to docs/schemas/.

Tests check real documents against them.
"""

# ruff: noqa: E402

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from pulsar_advisor.model.plans.goal import Goal

# Only schemas show what fields mean. Pydantic looks for that in the source of each class, which no command should wait
# for; models defined from here on inherit this, and their dataclasses too, except those with a configuration.
BaseModel.model_config["use_attribute_docstrings"] = True
Goal.__pydantic_config__["use_attribute_docstrings"] = True

from pulsar_advisor.documents.apply_result import ApplyResult
from pulsar_advisor.documents.audit_result import AuditResult
from pulsar_advisor.documents.broker_tables import BrokerTables
from pulsar_advisor.documents.diagnosis import Diagnosis
from pulsar_advisor.documents.explanation import ExplanationOfSnapshot
from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.documents.ledger_head import LedgerHead
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.plan_calls import PlanCalls
from pulsar_advisor.documents.prune_result import Pruned
from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.documents.roll_status import RollStatus
from pulsar_advisor.documents.simulation import SimulationResult
from pulsar_advisor.documents.snapshot_index import SnapshotIndex
from pulsar_advisor.documents.snapshot_summary import SnapshotSummary
from pulsar_advisor.documents.tables_result import TablesResult
from pulsar_advisor.documents.upgrade import UpgradePreview
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.documents.verify_result import VerifyResult
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.history.difference import Difference
from pulsar_advisor.history.trend import Trend
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.questions.restart_order import RestartOrder
from pulsar_advisor.planning.questions.scale import Scale
from pulsar_advisor.reporting.page import ReportPage

_FAMILY: Final = "pulsar-advisor/"

_TYPES: Final = (
    ApplyResult,
    ApprovalPolicy,
    AuditResult,
    BrokerTables,
    Diagnosis,
    Difference,
    ExplanationOfSnapshot,
    HistoryDay,
    LedgerHead,
    Manifest,
    Plan,
    PlanCalls,
    Pruned,
    Recommendation,
    ReportPage,
    RestartOrder,
    RollStatus,
    Scale,
    SimulationResult,
    SnapshotIndex,
    SnapshotSummary,
    TablesResult,
    Trend,
    UpgradePreview,
    Validation,
    VerifyResult,
)

for _kind in filter(is_dataclass, _TYPES):
    _kind.__pydantic_config__ = BaseModel.model_config

DOCUMENTS: Final[Mapping[str, type]] = dict(sorted((kind.SCHEMA.removeprefix(_FAMILY), kind) for kind in _TYPES))
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
        expectation = generated["$defs"]["Expectation"]["properties"]
        properties["boundaries"] = {"type": "array", "items": expectation["boundaries"]}
        expectation["boundaries"] = {
            "description": "Position of those of its namespace in the plan's `boundaries`.",
            "type": "integer",
            "minimum": 0,
        }
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
