"""Where a roll is: what `roll continue`, `roll status` and `roll end` answer."""

from __future__ import annotations

from typing import ClassVar, Literal

from pulsar_advisor.documents.document import Document, Part

ShownState = Literal["to come", "planned", "moving", "stopped", "moved", "drained", "restarted"]


class TurnStatus(Part):
    """One broker of a roll."""

    broker: str
    state: ShownState
    """planned: nothing was sent yet. stopped: its run ended early. moved: its plan was carried out, and whether it has
    something left was not looked at yet. drained: it waits for its restart."""
    plan: str | None
    """The digest of the plan that drains it; null before its turn."""
    moved: int
    """Bundles that left it so far."""


class RollStatus(Document):
    """A roll so far, and what is left of it."""

    SCHEMA: ClassVar = "pulsar-advisor/roll-status/1"
    MADE_BY: ClassVar = "roll"

    digest: str
    """Of the plan that was approved."""
    cluster: str
    turns: tuple[TurnStatus, ...]
    """Restarted brokers in the order of their restarts, then the others in the approved order."""
    restart: str | None
    """The broker that is drained, so that somebody may restart it now; null once somebody says that they did, and
    while the roll is paused, no approval of it is in force, or `roll status` sees the balancer on."""
    sentence: str
    moves: int
    """Moves so far."""
    moves_left: int
    """As the newest plan expects."""
    moves_take_s: float
    """About how long those take at the approved pace; restarts come on top."""
    approved_until_ms: int | None
    """Until when the approval holds; null without a valid one."""
    balancer_off: tuple[str, ...]
    """Settings that the roll keeps off until it ends."""
    still_off: tuple[str, ...]
    """Settings that could not be restored, or were left by a process that is gone: exit code 8."""
    ended: str | None
    """Why it ended; null while it hasn't."""
    announced: str | None = None
    """Who reported that the drained broker was restarted; null before that."""
    paused: str | None = None
    """Who asked for a pause that is in force; null without one."""
    given_up: bool = False
    """Whether the process or task that carried it on has ended, and no other has taken over since."""
    ledger_head: str = ""
    """The ledger's last event, `NUMBER:HASH`."""
