"""Extra links: the buttons *Report*, *Plan*, *Roll* and *Ledger* of a task, which open the advisor's pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseOperatorLink

from pulsar_advisor_airflow.configuration import page_link, report_link

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from pulsar_advisor.execution.ledger.tables import Hold

BEGUN: Final = "begun"
"""Key of the XCom by which a task says that it has begun to carry its plan out."""
HELD: Final = "held"
"""Key of the XCom by which it says what it, or an earlier try of it, held last: a `Hold` as a list."""


def hold_of(said: Sequence[int] | None) -> Hold | None:
    """The `Hold` that a task said; None if it said none."""
    return None if said is None else (said[0], said[1])


class ReportLink(BaseOperatorLink):  # type: ignore[misc]
    """The report of the snapshot that a task is about."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002
        """Its address; empty if the task got no snapshot."""
        snapshot = _reference(operator).get("snapshot") or getattr(operator, "snapshot", None)
        return report_link(operator.cluster, snapshot) if snapshot else ""


class PlanLink(BaseOperatorLink):  # type: ignore[misc]
    """The plan that a task is about: its steps, who proposed and approved it, and its runs."""

    name = "Plan"
    page = "plans"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002
        """Its address; empty if the task got no plan."""
        digest = _reference(operator).get("digest")
        return page_link("clusters", operator.cluster, self.page, digest) if digest else ""


class RollLink(PlanLink):
    """The page of the roll that a task carries out: its progress, and the buttons that steer it."""

    name = "Roll"
    page = "rolls"


class LedgerLink(BaseOperatorLink):  # type: ignore[misc]
    """What the ledger has recorded about that plan."""

    name = "Ledger"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Its address; empty if the task got no plan."""
        plan = PlanLink().get_link(operator, ti_key=ti_key)
        return f"{plan}#ledger" if plan else ""


def show_begun(operator: BaseOperator, context: Context) -> None:
    """Say that a task carries its plan out, and show its links from now on.

    Airflow itself shows them when the task has ended, even if it never came to that.
    """
    ti = context["ti"]
    ti.xcom_push(key=BEGUN, value=True)
    for link in operator.operator_extra_links:
        ti.xcom_push(key=link.xcom_key, value=link.get_link(operator, ti_key=ti))


def _reference(operator: Any) -> dict[str, str]:
    """The operator's `PlanReference` as a mapping; empty without one."""
    plan = getattr(operator, "plan", None)
    return plan if isinstance(plan, dict) else {}
