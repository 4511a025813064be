"""`snapshots prune` by lifetimes: raw files, snapshots and folded days, in turn; nothing before its day holds it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import closing
from datetime import datetime

from pulsar_advisor.documents.prune_result import Pruned
from pulsar_advisor.model.cluster.snapshot_id import day_of
from pulsar_advisor.snapshots.retention import Lifetimes
from pulsar_advisor.stages.folded import FoldedDays
from pulsar_advisor.stages.prune import PlanReferences, remove
from pulsar_advisor.storage.history import days_with_files, remove_day
from pulsar_advisor.storage.lease import Held
from pulsar_advisor.storage.removal import is_at_work, remove_raw_files, with_raw_files
from pulsar_advisor.storage.root import Root

_log = logging.getLogger(__name__)


def run(root: Root, lifetimes: Lifetimes, address: str | None, now: datetime, *, dry_run: bool) -> Pruned:
    """Remove what has outlived its lifetime, oldest first; a folded day only once its snapshots are gone.

    What a plan refers to stays. So does what an event refers to, as long as its day (see `FoldedDays.of_events`), and
    what no past day holds. `address` and errors are as for `prune`.
    """
    folded = FoldedDays(root, f"{now:%Y%m%d}")
    of_events: set[str] = set()
    unfolded: list[str] = []

    def outdated(existing: Sequence[str]) -> Collection[str]:
        aged = lifetimes.outdated(existing, folded.fit, now)
        ended = lifetimes.outdated_days({day_of(snapshot) for snapshot in aged}, now)
        of_events.update(folded.of_events([snapshot for snapshot in aged if day_of(snapshot) not in ended]))
        others = [snapshot for snapshot in aged if snapshot not in of_events]
        held = {snapshot for snapshot in others if folded.hold(snapshot)}
        going = held - folded.damaged(held)
        unfolded.extend(snapshot for snapshot in others if snapshot not in going)
        return going

    with closing(PlanReferences(root, address)) as references:
        pruned = remove(root, references, outdated, dry_run=dry_run)
        left = sorted(set(root.snapshots()).difference(pruned.removed))
        raw_of_days = _remove_raw_files(root, lifetimes.outdated_raw(left, now), references, folded, dry_run=dry_run)
    return pruned.model_copy(
        update={
            "of_events": tuple(sorted(of_events)),
            "unfolded": tuple(unfolded),
            "raw_of_days": tuple(raw_of_days),
            "days": tuple(_remove_days(root, lifetimes, left, now, dry_run=dry_run)),
        }
    )


def _remove_raw_files(
    root: Root, outdated: Sequence[str], references: PlanReferences, folded: FoldedDays, *, dry_run: bool
) -> list[str]:
    """Remove raw files; returns their days."""
    raw = with_raw_files(root) if outdated else set()
    there = [snapshot for snapshot in outdated if snapshot in raw]
    staying = {*references.snapshots(), *folded.of_events(there)}

    def may_go(snapshot: str) -> bool:
        return (
            snapshot not in staying
            and root.snapshot(snapshot).is_written("normalize")
            and folded.hold(snapshot)
            and not is_at_work(root.snapshot(snapshot), ("raw", "tables/result"))
        )

    days = set()
    for snapshot in filter(may_go, there):
        days.add(day_of(snapshot))
        if not dry_run:
            remove_raw_files(root.snapshot(snapshot))
    return sorted(days)


def _remove_days(root: Root, lifetimes: Lifetimes, left: Sequence[str], now: datetime, *, dry_run: bool) -> list[str]:
    if lifetimes.history_s is None:
        return []
    needed, removed = {day_of(snapshot) for snapshot in left}, []
    for day in lifetimes.outdated_days(days_with_files(root), now):
        if day in needed:
            continue
        try:
            if not dry_run:
                remove_day(root.day(day))
        except Held as held:
            _log.warning("%s", held)
        else:
            removed.append(day)
    return removed
