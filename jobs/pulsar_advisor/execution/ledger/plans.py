"""The plans in a ledger: each once, with its document and the summary for lists."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.plan_summary import summary_of
from pulsar_advisor.execution.ledger.tables import PlanRecord, PlanSummary
from pulsar_advisor.model.errors import AdvisorError, Refused, UsageError
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import Sealed, digest_of, load_plan
from pulsar_advisor.model.text.reader import reader


def record_plan(ledger: Ledger, session: Session, plan: Sealed) -> PlanRecord:
    """The row of a plan, added within a write transaction if it is new."""
    record = session.get(PlanRecord, plan.digest)
    if record is None:
        record = PlanRecord(
            digest=plan.digest,
            cluster=plan.cluster,
            cluster_name=plan.cluster_name,
            snapshot=plan.snapshot,
            document=plan.content.decode(),
            recorded_at_ms=ledger.now_ms(),
        )
        session.add(record)
        session.flush()  # before the rows that refer to it
        session.add(_summary(record))
    return record


def plan_record(ledger: Ledger, digest: str) -> PlanRecord | None:
    """A plan, with its document."""
    with ledger.reading() as session:
        return session.get(PlanRecord, digest)


def recorded_plan(ledger: Ledger, digest: str) -> Plan:
    """The plan itself. Raises `UsageError` if the ledger has no plan with this digest, `Refused` if it isn't that."""
    if (record := plan_record(ledger, digest)) is None:
        raise UsageError(f"the ledger has no plan {digest}")
    plan = load_plan(record.document.encode())
    if digest_of(plan) != digest:
        raise Refused(
            f"what the ledger holds as plan {digest} is {digest_of(plan)}: it was exchanged; {reader().audit}"
        )
    return plan


def readable_plan(ledger: Ledger, digest: str) -> Plan | None:
    """As `recorded_plan`; None if the ledger holds none that can be read."""
    try:
        return recorded_plan(ledger, digest)
    except AdvisorError:
        return None


def only_plan(ledger: Ledger, cluster: str, digits: str) -> Plan | None:
    """The one plan of a cluster (its name in the root) whose digest begins with these digits; None without, or of more.

    For a plan whose file is gone: runs and approvals of it are still to be ended.
    """
    begins = PlanRecord.digest.startswith(f"sha256:{digits.removeprefix('sha256:')}", autoescape=True)
    found = ledger.all(select(PlanRecord.digest).where(PlanRecord.cluster == cluster, begins).limit(2))
    return recorded_plan(ledger, found[0]) if len(found) == 1 else None


def summary_of_plan(ledger: Ledger, digest: str) -> PlanSummary | None:
    """The summary of a plan for lists."""
    with ledger.reading() as session:
        return session.get(PlanSummary, digest)


def new_plans(ledger: Ledger, cluster: str, known: Collection[str]) -> Iterator[PlanRecord]:
    """Each plan of a cluster whose digest isn't known yet, in a transaction of its own: together they may take long."""
    digests = ledger.all(select(PlanRecord.digest).where(PlanRecord.cluster == cluster))
    for digest in set(digests).difference(known):
        with ledger.reading() as session:
            plan = session.get_one(PlanRecord, digest)
        yield plan


def _summary(record: PlanRecord) -> PlanSummary:
    return PlanSummary(
        digest=record.digest,
        cluster=record.cluster,
        snapshot=record.snapshot,
        recorded_at_ms=record.recorded_at_ms,
        **vars(summary_of(record.document)),
        last_event=0,
    )
