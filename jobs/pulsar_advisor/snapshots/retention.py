"""Which snapshots may be removed: what the rules keep, and which ones a plan refers to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from pulsar_advisor.model.bounds import KEEP_COUNT, KEEP_DAYS
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.errors import UsageError


@dataclass(frozen=True)
class Retention:
    """What is kept: whatever either rule keeps, and always the newest snapshot."""

    keep_days: int | None = None
    keep_count: int | None = None

    def __post_init__(self) -> None:
        """Refuse a rule that keeps nothing, and the absence of rules."""
        if self.keep_days is None and self.keep_count is None:
            raise UsageError("give --keep-days N, --keep-count N, or both")
        KEEP_DAYS.check(self.keep_days)
        KEEP_COUNT.check(self.keep_count)

    def outdated(self, snapshots: Collection[str], now: datetime) -> list[str]:
        """The snapshots (ids) that no rule keeps, oldest first."""
        newest_first = sorted(snapshots, reverse=True)
        kept = set(newest_first[: self.keep_count or 1])
        if self.keep_days is not None:
            oldest_kept = snapshot_id(now - timedelta(days=self.keep_days))
            kept |= {snapshot for snapshot in snapshots if snapshot >= oldest_kept}
        return [snapshot for snapshot in sorted(snapshots) if snapshot not in kept]


def referred_to(document: str | bytes, *, only_to_carry_out: bool = False) -> tuple[str, ...]:
    """The snapshots that a plan of any version was made from and that its strategies learnt from.

    None for one without steps to carry out, if others don't count. Raises `ValueError` if it is no plan.
    """
    try:
        read = msgspec.json.decode(document, type=_Plan)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"not a plan: {error}") from error
    if only_to_carry_out and not any(step.executable for step in read.steps):
        return ()
    return (read.snapshot, *read.memory.snapshots)


class _Step(msgspec.Struct):
    executable: bool


class _Memory(msgspec.Struct):
    snapshots: list[str] = []


class _Plan(msgspec.Struct):
    """Of a plan of any version, what refers to snapshots."""

    snapshot: str
    memory: _Memory
    steps: list[_Step]
