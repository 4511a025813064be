"""The result of `doctor`: whether a cluster is ready for a capture, check by check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pulsar_advisor.documents.document import Document
from pulsar_advisor.model.errors import ClusterUnreachable, DataNotFit
from pulsar_advisor.model.text.some_of import count

Status = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Row:
    """One check and its result."""

    check: str
    status: Status
    sentence: str
    what_to_do: str = ""


class Diagnosis(Document):
    """Whether a capture made now would produce a usable snapshot."""

    SCHEMA: ClassVar = "pulsar-advisor/doctor/1"
    MADE_BY: ClassVar = "doctor"

    cluster_name: str
    fit: bool
    """Whether no row is a problem."""
    reachable: bool
    """Whether anything answered at an admin URL."""
    rows: tuple[Row, ...]

    @property
    def exit_code(self) -> int:
        """0 fit for a capture, 1 unreachable, 3 not fit."""
        if self.fit:
            return 0
        return DataNotFit.exit_code if self.reachable else ClusterUnreachable.exit_code

    @property
    def sentence(self) -> str:
        """The verdict."""
        problems, warnings = (
            count(sum(row.status == status for row in self.rows), status) for status in ("problem", "warning")
        )
        return f"Ready for a capture; {warnings}." if self.fit else f"Not ready for a capture: {problems}, {warnings}."
