"""The result of `snapshots prune`: which snapshots were removed, and which are kept although outdated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pulsar_advisor.documents.document import Document


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
