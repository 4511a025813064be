"""Seals: the ledger holds a hash of what each stage wrote, so that a changed file is noticed before it is judged."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import select

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.tables import Seal
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.release import running_release

RELEASE: Final = running_release()


def record_seal(ledger: Ledger, cluster: str, snapshot: str, stage: str, sha256: str, plans: Collection[str]) -> None:
    """Record what a stage of this release wrote about a cluster's snapshot (by its name in paths), if it is new."""
    with ledger.writing() as session:
        of_stage = (Seal.cluster == cluster, Seal.snapshot == snapshot, Seal.stage == stage)
        last = session.scalars(select(Seal).where(*of_stage).order_by(Seal.id.desc()).limit(1)).one_or_none()
        if last is not None and (last.sha256, last.release) == (sha256, RELEASE):
            return
        seal = Seal(
            cluster=cluster,
            snapshot=snapshot,
            stage=stage,
            sha256=sha256,
            plans="\n".join(plans),
            release=RELEASE,
            at_ms=ledger.now_ms(),
        )
        session.add(seal)
        detail = f"{stage} of snapshot {snapshot} of cluster {cluster}"
        ledger.add_event(session, f"sha256:{sha256}", "sealed", detail, [seal])


def seals_of_snapshot(ledger: Ledger, cluster: str, snapshot: str) -> Sequence[Seal]:
    """What stages wrote about a snapshot of a cluster (its name in paths), oldest first."""
    return ledger.all(select(Seal).where(Seal.cluster == cluster, Seal.snapshot == snapshot).order_by(Seal.id))


def why_not_as_sealed(seals: Sequence[Seal], snapshot: str, stage: str, found: str | None) -> str | None:
    """Why a stage's result can't be compared with the newest of a snapshot's seals; None if they agree.

    `found` is the SHA-256 of the result that is there, or None. Without a result and a seal the answer is None, too.
    Raises `Refused` if they differ.
    """
    sealed = next((one for one in reversed(seals) if one.stage == stage), None)
    if sealed is None:
        return found and f"this ledger has no seal of what `{stage}` wrote about snapshot {snapshot}"
    if found is None:
        return f"what `{stage}` wrote about snapshot {snapshot} no longer exists"
    if found != sealed.sha256:
        raise Refused(
            f"what `{stage}` wrote about snapshot {snapshot} was changed since: its SHA-256 is {found}, but "
            f"{sealed.name} in the ledger says {sealed.sha256}. Run `{stage}` again, and find out who changed it"
        )
    return None
