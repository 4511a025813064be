"""Who proposed a plan."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plans import record_plan
from pulsar_advisor.execution.ledger.tables import Proposal
from pulsar_advisor.execution.person import Person
from pulsar_advisor.model.plans.sealed import Sealed


def add_proposal(
    ledger: Ledger, session: Session, plan: Sealed, proposer: Person, not_computed_here: str | None
) -> None:
    """Record, within a write transaction, that somebody proposed a plan, and why it can't be computed here."""
    record = record_plan(ledger, session, plan)
    proposal = Proposal(
        digest=record.digest,
        proposer=proposer.name,
        source=proposer.source,
        at_ms=ledger.now_ms(),
        not_computed_here=not_computed_here,
    )
    session.add(proposal)
    detail = f"by {proposer}"
    if not_computed_here:
        detail += f"; not computed here: {not_computed_here}"
    ledger.add_event(session, record.digest, "proposed", detail, [record, proposal])


def proposals_of_plan(ledger: Ledger, digest: str) -> Sequence[Proposal]:
    """Who proposed a plan, oldest first."""
    return ledger.all(select(Proposal).where(Proposal.digest == digest).order_by(Proposal.id))
