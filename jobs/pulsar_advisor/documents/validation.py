"""The result of `validate`: whether a snapshot can be trusted, check by check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import TypeAdapter

from pulsar_advisor.documents.document import OfSnapshot, Part
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.plans.canonical_json import Json

Severity = Literal["critical", "warning", "info"]
Scope = Literal["cluster", "broker", "namespace", "bundle"]
"""What its failing rows are."""
Effect = Literal["stop", "confine", "doubt"]
"""stop: the snapshot must not be used. confine: the failing rows are set aside, as they can't be computed with, or as
Pulsar's leader itself passes over them. doubt: they count as they are, as they do for the leader, and the steps that
touch them are less sure.
"""

Cell = str | int | float | bool | None


class CheckResult(Part):
    """One check and its result."""

    check: str
    title: str
    severity: Severity
    scope: Scope
    effect: Effect
    about: tuple[Input, ...] | None
    """Inputs of decisions that the check is about; null for the snapshot as a whole."""
    reason: str
    action: str
    success: bool
    failed_rows: int
    examples: tuple[Mapping[str, Cell | list[Cell]], ...]
    """Failing rows: what names them, and the columns that the check is about."""
    excluded: tuple[str, ...]
    """What is set aside because of it."""
    concerned: tuple[str, ...] | None
    """What it casts doubt on; null if too many to list."""
    error: str | None
    """Why the check could not be evaluated."""

    @property
    def failing(self) -> tuple[str, ...] | None:
        """What it sets aside or casts doubt on; None if too many to list."""
        return self.excluded if self.effect == "confine" else self.concerned


class CatalogueEntry(Part):
    """A check, as `validate --explain` shows it."""

    check: str
    title: str
    severity: Severity
    scope: Scope
    affects: str
    """What rests on the rows that it is about."""
    why: str
    action: str
    source: str
    """The file of its suite, and the expectation there."""


def _with_effects(document: Json) -> Json:
    """In the first version, every warning below the scope `cluster` confined its rows."""

    def added(row: Json) -> Json:
        effect = "doubt"
        if row["severity"] == "critical":
            effect = "stop"
        elif row["severity"] == "warning" and row["scope"] != "cluster":
            effect = "confine"
        return {**row, "effect": effect, "about": row.get("about"), "concerned": row.get("concerned")}

    results = TypeAdapter(list[Json]).validate_python(document["results"])
    return {**document, "results": [added(row) for row in results]}


class Validation(OfSnapshot):
    """Whether a snapshot can be trusted, check by check."""

    SCHEMA: ClassVar = "pulsar-advisor/validation-result/2"
    MADE_BY: ClassVar = "validate"
    EARLIER: ClassVar = {"pulsar-advisor/validation-result/1": _with_effects}

    suites_sha256: str
    success: bool
    results: tuple[CheckResult, ...]

    @property
    def stopped_by(self) -> str:
        """The critical checks that did not pass, in words: a title says what holds if its check passes."""
        titles = (result.title for result in self.results if result.severity == "critical" and not result.success)
        return f"did not pass: {'; '.join(titles)}"

    @property
    def set_aside_by(self) -> tuple[str, ...]:
        """The failed checks that set something aside."""
        return tuple(result.check for result in self.results if result.excluded)
