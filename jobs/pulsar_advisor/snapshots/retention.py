"""Which snapshots may be removed: what the rules keep, and which ones a plan refers to."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from pulsar_advisor.model.bounds import KEEP_COUNT, KEEP_DAYS
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.errors import UsageError

SCHEMA: Final = "pulsar-advisor/prune-result/1"


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


@dataclass(frozen=True)
class Pruned:
    """What was removed (or would be), and what is kept although outdated."""

    removed: tuple[str, ...]
    referred_to: tuple[str, ...]
    """Outdated, but a plan refers to them."""
    at_work: tuple[str, ...]
    """Outdated, but a stage is working on them."""
    remainders: tuple[str, ...]
    """Ids for which an interrupted prune had left folders behind."""
    dry_run: bool
    unreadable: tuple[str, ...] = ()
    """Plans, by file or digest, that can't be read: the snapshots that they were made from are kept."""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"schema": SCHEMA, **asdict(self)}

    def lines(self) -> Iterator[str]:
        """For people."""
        verb = "would remove" if self.dry_run else "removed"
        yield from (f"{verb} {snapshot}" for snapshot in self.removed)
        yield from (f"{verb} what an interrupted prune left of {snapshot}" for snapshot in self.remainders)
        yield from (f"kept {snapshot}: a plan refers to it" for snapshot in self.referred_to)
        yield from (f"kept {snapshot}: a stage is working on it" for snapshot in self.at_work)
        yield from (f"can't be read: {plan}; the snapshot it was made from is kept" for plan in self.unreadable)
        if not (self.removed or self.remainders or self.referred_to or self.at_work):
            yield "nothing to prune"


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
