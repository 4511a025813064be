"""Records in the ledger that somebody set a gate's state by hand instead of answering it.

The gate itself records an answer, since it knows who gave it. Setting its state isn't an approval, since `apply` asks
the ledger; the record shows that somebody tried.
"""

from __future__ import annotations

import re
from typing import Any

from airflow.listeners import hookimpl

from pulsar_advisor_airflow.configuration import option
from pulsar_advisor_airflow.ledger import opened_ledger

GATE = "PlanApprovalOperator"


@hookimpl  # type: ignore[untyped-decorator]
def on_task_instance_success(previous_state: Any, task_instance: Any) -> None:
    """A gate was marked as a success."""
    _record(previous_state, task_instance, "success")


@hookimpl  # type: ignore[untyped-decorator]
def on_task_instance_failed(previous_state: Any, task_instance: Any) -> None:
    """A gate was marked as failed."""
    _record(previous_state, task_instance, "failed")


@hookimpl  # type: ignore[untyped-decorator]
def on_task_instance_skipped(previous_state: Any, task_instance: Any) -> None:
    """A gate was marked as skipped."""
    _record(previous_state, task_instance, "skipped")


def _record(previous_state: Any, task_instance: Any, state: str) -> None:
    # The API server, where users set states, passes no previous state; a worker, where the task itself changes it,
    # does.
    if previous_state is not None or getattr(task_instance, "operator", None) != GATE:
        return
    from pulsar_advisor.execution.ledger.approvals import record_refusal
    from pulsar_advisor.storage.root import Root

    digest = _shown_digest(task_instance.id)
    if digest is not None:
        what = f"the gate was set to {state} by hand, which is no approval (airflow, {task_instance.run_id})"
        with opened_ledger(Root(option("root"), "any")) as ledger:
            record_refusal(ledger, digest, what)


def _shown_digest(task_instance_id: Any) -> str | None:
    """The digest of the plan that the gate showed in the subject of its request."""
    from sqlalchemy import select

    from pulsar_advisor_airflow.airflow_internals import HITLDetail, create_session

    with create_session() as session:
        subject = session.scalar(select(HITLDetail.subject).where(HITLDetail.ti_id == task_instance_id))
    found = re.search(r"sha256:[0-9a-f]{64}", subject or "")
    return found[0] if found else None
