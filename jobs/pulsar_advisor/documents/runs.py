"""What `runs` lists: the runs of a cluster's plans, and all that happened with one plan."""

from __future__ import annotations

from typing import Literal

from pulsar_advisor.documents.document import Count, Part

RunState = Literal["active", "done", "refused", "stopped", "aborted"]
"""active: a process holds it, or crashed while holding it, or it is parked. done: every executable step confirmed.
refused: ended before anything was sent. stopped: ended with some steps sent and others left. aborted: ended by a
person, can't be resumed."""

StepState = Literal["pending", "sent", "confirmed", "failed", "skipped", "unresolved"]
"""sent: written before the call is sent; from then on, only observing the cluster decides. unresolved: the cluster did
not show the outcome of the call in time."""


class RecordedRun(Part):
    """A run of a plan, as the ledger has it."""

    run: int
    digest: str
    state: RunState
    started_at_ms: Count
    ended_at_ms: Count | None
    approver: str
    approver_source: str
    """What vouches for the name, as in the ledger's `approvals.source`."""
    sentence: str
    """How it ended."""
    still_off: tuple[str, ...]
    """Settings that it switched off and could not restore."""


class RecordedEvent(Part):
    """An event of a plan, as the ledger has it."""

    event: int
    at_ms: Count
    run: int | None
    step: str | None
    kind: str
    detail: str
    terms: tuple[str, ...]
    """Of an approval: until when it held, to what it consented, and the limits, each in words."""
