"""The results of `verify`: runs compared with a snapshot taken afterwards."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from sqlalchemy import select

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import Run, Verification, VerifiedBroker, VerifiedBundle

Verdict = Literal["as predicted", "bundles as predicted, usage not judged", "not as predicted"]


def record_verification(
    ledger: Ledger, verification: Verification, bundles: Sequence[VerifiedBundle], brokers: Sequence[VerifiedBroker]
) -> None:
    """Record the result of comparing a run with a snapshot; only the first result per snapshot is kept."""
    with ledger.writing() as session:
        known = select(Verification.id).where(
            Verification.run_id == verification.run_id, Verification.snapshot == verification.snapshot
        )
        if session.scalar(known) is not None:
            return
        session.add(verification)
        session.flush()
        rows: list[VerifiedBundle | VerifiedBroker] = [*bundles, *brokers]
        for row in rows:
            row.verification_id = verification.id
        session.add_all(rows)
        run = session.get_one(Run, verification.run_id)
        outcome = "as predicted" if verification.as_predicted else "deviates"
        detail = f"with snapshot {verification.snapshot}: {outcome}"
        ledger.add_event(session, run.digest, "verified", detail, [verification, *rows], run.id)


def verifications_of_plan(ledger: Ledger, digest: str) -> Sequence[Verification]:
    """The results of `verify` for the runs of a plan, oldest first."""
    query = select(Verification).join(Run, Run.id == Verification.run_id).where(Run.digest == digest)
    return ledger.all(query.order_by(Verification.id))


def last_verdicts(ledger: Ledger, runs: Collection[int]) -> Mapping[int, Verdict]:
    """How each of these runs went by the last result of `verify`; only runs that have one."""
    query = select(Verification).where(Verification.run_id.in_(runs)).order_by(Verification.id)
    return {one.run_id: _verdict(one) for one in ledger.all(query)}


def _verdict(verification: Verification) -> Verdict:
    if not verification.as_predicted:
        return "not as predicted"
    return "as predicted" if verification.usage_judged else "bundles as predicted, usage not judged"
