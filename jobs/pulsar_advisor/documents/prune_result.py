"""The result of `snapshots prune`: what was removed, and which snapshots are kept although outdated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar

from pulsar_advisor.documents.document import Document
from pulsar_advisor.model.cluster.snapshot_id import day_of
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import count


class Pruned(Document):
    """What was removed (or would be), and what is kept although outdated."""

    SCHEMA: ClassVar = "pulsar-advisor/prune-result/1"
    MADE_BY: ClassVar = "snapshots prune"

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
    of_events: tuple[str, ...] = ()
    """Outdated, but the first that shows an event, or the last before it."""
    unfolded: tuple[str, ...] = ()
    """Outdated, but their day isn't over, wasn't folded with them as they are now, or is damaged."""
    raw_of_days: tuple[str, ...] = ()
    """Days (`YYYYMMDD`) whose raw files were removed."""
    days: tuple[str, ...] = ()
    """Folded days that were removed."""

    def lines(self) -> Iterator[str]:
        """For people."""
        verb = "would remove" if self.dry_run else "removed"
        yield from (f"{verb} {snapshots}" for snapshots in _by_day(self.removed))
        yield from (f"{verb} the raw files of day {day}" for day in self.raw_of_days)
        yield from (f"{verb} folded day {day}" for day in self.days)
        yield from (f"{verb} what an interrupted prune left of {snapshot}" for snapshot in self.remainders)
        for kept, reason in (
            (self.referred_to, "a plan refers to {it}"),
            (self.at_work, "a stage is working on {it}"),
            (self.of_events, "an event refers to {it}"),
            (self.unfolded, f"no folded day that is over holds {{it}}: once normalized, {reader().fold_days}"),
        ):
            yield from (
                f"kept {snapshots}: {reason.format(it='them' if ' ' in snapshots else 'it')}"
                for snapshots in _by_day(kept)
            )
        yield from (f"can't be read: {plan}; the snapshot it was made from is kept" for plan in self.unreadable)
        if not any(value for name, value in self if name not in ("dry_run", "unreadable")):
            yield "nothing to prune"


def _by_day(snapshots: Sequence[str]) -> Iterator[str]:
    """Each day's: the one, or their number."""
    for day, of_day in groupby(sorted(snapshots), day_of):
        first, *others = of_day
        yield f"{count(1 + len(others), 'snapshot')} of {day}" if others else first
