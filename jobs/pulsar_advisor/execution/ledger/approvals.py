"""What was decided about a plan: approvals and their withdrawal, rejections, and refusals to approve or apply it.

Whether an approval is allowed, and whether it holds, is for `execution.consent.approval` to say.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import approvals_of
from pulsar_advisor.execution.ledger.plans import record_plan
from pulsar_advisor.execution.ledger.rolls import plans_of_roll
from pulsar_advisor.execution.ledger.tables import Approval, Run
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE, ApplyThrottle
from pulsar_advisor.model.bounds import VALID_FOR_S
from pulsar_advisor.model.errors import StorageError
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import seal
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.planning.plans.consent import ConsentName

APPROVED: Final = "approved"
"""Kind of the event that names an approval."""
REJECTED: Final = "rejected"
"""Kind of the event, and name of the state it leaves a plan in."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What an approver grants with a plan, and why."""

    consents: Collection[ConsentName] = ()
    throttle: ApplyThrottle = DEFAULT_THROTTLE
    """The loosest limits for its runs."""
    valid_for_s: int = VALID_FOR_S
    comment: str = ""


def add_approval(
    ledger: Ledger, session: Session, plan: Plan, approver: Person, terms: Terms, expires_at_ms: int
) -> Approval:
    """Record, within a write transaction, an approval that the policy allowed or that a roll's approval implies."""
    record = record_plan(ledger, session, seal(plan))
    approval = Approval(
        digest=record.digest,
        approver=approver.name,
        source=approver.source,
        at_ms=ledger.now_ms(),
        expires_at_ms=expires_at_ms,
        comment=terms.comment,
        allows_splits="splits" in terms.consents,
        accepts_worse="worse" in terms.consents,
        accepts_low_confidence="low_confidence" in terms.consents,
        throttle_json=terms.throttle.as_json(),
    )
    session.add(approval)
    detail = f"by {approver}" + (f": {terms.comment}" if terms.comment else "")
    ledger.add_event(session, record.digest, APPROVED, detail, [record, approval])
    return approval


def withdraw_approvals(ledger: Ledger, digest: str, person: Person, comment: str) -> int:
    """Withdraw a plan's valid approvals and those that an active run relies on; return their number.

    Approvals of a roll's turns rest on the roll's, and are withdrawn with it.
    """
    with ledger.writing() as session:
        return sum(_withdraw(ledger, session, plan, person, comment) for plan in plans_of_roll(session, digest))


def _withdraw(ledger: Ledger, session: Session, digest: str, person: Person, comment: str) -> int:
    relied_on = select(Run.approval_id).where(Run.digest == digest, Run.state == "active")
    standing = select(Approval).where(
        Approval.digest == digest,
        Approval.withdrawn_at_ms.is_(None),
        or_(Approval.expires_at_ms > ledger.now_ms(), Approval.id.in_(relied_on)),
    )
    approvals = session.scalars(standing).all()
    for approval in approvals:
        approval.withdrawn_at_ms = ledger.now_ms()
    if approvals:
        detail = f"by {person}" + (f": {comment}" if comment else "")
        ledger.add_event(session, digest, "withdrawn", detail, approvals)
    return len(approvals)


def approvals_of_plan(ledger: Ledger, digest: str) -> Sequence[Approval]:
    """All approvals of a plan, including withdrawn and expired ones, oldest first."""
    return ledger.all(select(Approval).where(Approval.digest == digest).order_by(Approval.id))


def approvals_of_runs(ledger: Ledger, runs: Sequence[Run]) -> Sequence[Approval]:
    """The approval that each run relies on, in their order. Raises `StorageError` if the ledger doesn't hold one."""
    of_plans = approvals_of(ledger, [run.digest for run in runs]).values()
    found = {approval.id: approval for approvals in of_plans for approval in approvals}
    for run in runs:
        if run.approval_id not in found:
            raise StorageError(
                f"the ledger has no approval {run.approval_id}, which run {run.id} names: {reader().audit}"
            )
    return [found[run.approval_id] for run in runs]


def record_refusal(ledger: Ledger, digest: str, reason: str) -> None:
    """Record that an attempt to approve or apply a plan was refused."""
    with ledger.writing() as session:
        ledger.add_event(session, digest, "refused", reason)


def record_rejection(ledger: Ledger, digest: str, answer: str, gate: str) -> None:
    """Record that the answer to a request for approval was no, or didn't come in time; `gate`: where it was asked."""
    with ledger.writing() as session:
        ledger.add_event(session, digest, REJECTED, f"{answer} ({gate})")


def rejected_at(ledger: Ledger, digest: str, gate: str) -> str | None:
    """The rejection given at this gate, if it is the last thing that happened to the plan."""
    for last in ledger.events(digest, count=1):
        answer, _, place = last.detail.rpartition(" (")
        if last.kind == REJECTED and place == f"{gate})":
            return answer
    return None
