"""The states of a cluster's plans, from the ledger: proposed, rejected, approved, expired, applied, undone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final, Literal

from pulsar_advisor.execution.ledger import Ledger
from pulsar_advisor.execution.ledger_tables import PlanRecord

PlanStateName = Literal[
    "proposed", "rejected", "approved", "withdrawn", "expired", "applying", "stopped", "aborted", "applied", "undone"
]
"""rejected: whoever was asked last said no, or didn't answer in time. approved: an approval is valid; expired,
withdrawn: the newest one no longer is. applying, stopped, aborted: its newest run is active, ended with steps left, or
was ended by a person. undone: a plan that undoes it was applied."""


_ASKED_AND_ANSWERED: Final = ("proposed", "approved", "rejected")


@dataclass(frozen=True)
class PlanState:
    """A proposed plan and its state."""

    digest: str
    snapshot: str
    shedder: str
    placement: str
    executable_steps: int
    maximum_before: float | None
    maximum_after: float | None
    state: PlanStateName
    steps_sha256: str
    """The same for plans whose executable steps do the same."""
    advised: bool
    """Whether the last recommendation of its snapshot advises it."""

    def as_document(self) -> dict[str, Any]:
        """The state as JSON data."""
        return asdict(self)


def plan_states(ledger: Ledger, cluster: str, advised: Collection[str] = ()) -> Iterator[PlanState]:
    """The plans of a cluster (its name in paths), newest snapshot first; `advised` are digests."""
    records = ledger.plans(cluster)
    documents = {record.digest: json.loads(record.document) for record in records}
    undone = {
        str(document["memory"]["undoes"])
        for digest, document in documents.items()
        if "undoes" in document["memory"] and any(run.state == "done" for run in ledger.runs(digest))
    }
    for record in records:
        document = documents[record.digest]
        yield PlanState(
            digest=record.digest,
            snapshot=record.snapshot,
            shedder=document["shedder"],
            placement=document["placement"],
            executable_steps=sum(step["executable"] for step in document["steps"]),
            maximum_before=document["predicted"]["before"]["maximum_ratio"],
            maximum_after=document["predicted"]["after"]["maximum_ratio"],
            steps_sha256=_sha256(document["steps"]),
            advised=record.digest in advised,
            state="undone" if record.digest in undone else _state(ledger, record),
        )


def _sha256(steps: Iterable[Mapping[str, Any]]) -> str:
    """What the executable ones of these steps (JSON) do, whatever made them."""
    done = sorted(
        (step["action"], step["namespace"], step["bundle"], step["destination"] or "", *step["boundaries"])
        for step in steps
        if step["executable"]
    )
    return sha256(repr(done).encode()).hexdigest()


def _state(ledger: Ledger, record: PlanRecord) -> PlanStateName:
    runs = [run for run in ledger.runs(record.digest) if run.state != "refused"]
    if any(run.state == "done" for run in runs):
        return "applied"
    if runs:
        newest = runs[-1].state
        return "applying" if newest == "active" else "aborted" if newest == "aborted" else "stopped"
    approvals = ledger.approvals(record.digest)
    if any(one.withdrawn_at_ms is None and one.expires_at_ms > ledger.now_ms() for one in approvals):
        return "approved"
    asked_and_answered = [event.kind for event in ledger.events(record.digest) if event.kind in _ASKED_AND_ANSWERED]
    if asked_and_answered[-1:] == ["rejected"]:
        return "rejected"
    if not approvals:
        return "proposed"
    return "withdrawn" if approvals[-1].withdrawn_at_ms is not None else "expired"
