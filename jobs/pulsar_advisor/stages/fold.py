"""`history fold`: folds a day's snapshots into tables that last. A day is folded again only if they changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from itertools import groupby, islice, takewhile
from typing import Final

from pulsar_advisor.documents.history_day import FoldedSnapshot, FoldedTable, HistoryDay
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import ledger_if_any
from pulsar_advisor.execution.ledger.steps import confirmed_steps
from pulsar_advisor.history.columns import COLUMNS, DAY_TABLES
from pulsar_advisor.history.day import fold
from pulsar_advisor.history.events import SEEN_LATE_MS, ConfirmedStep
from pulsar_advisor.history.moment import Moment
from pulsar_advisor.history.trend import summary_of
from pulsar_advisor.model.cluster.snapshot_id import day_of, midnight, snapshot_moment
from pulsar_advisor.model.errors import AdvisorError, Refused, StorageError, UsageError
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.stages.moments import folded_moments, knows_policies, last_seen, normalized_moment
from pulsar_advisor.stages.seal import is_sealed_elsewhere, seal_day, why_no_sealed_day
from pulsar_advisor.storage.history import day_if_any, first_after, folded_days, last_before
from pulsar_advisor.storage.lease import Held, held
from pulsar_advisor.storage.results import read_manifest, result_sha256, validation_if_any
from pulsar_advisor.storage.root import Day, Root, Snapshot
from pulsar_advisor.tables.days import damage, write_day

_log = logging.getLogger(__name__)

_AFTER: Final = "T~"
"""Sorts after every snapshot of a day."""


def run(day: Day, address: str | None = None) -> HistoryDay:
    """Fold the normalized snapshots of a day.

    `address` is the ledger's, by default SQLite in a local root. If there is a ledger, its plans explain moves, and
    it seals the day. Snapshots folded before come from the day itself, so an added snapshot costs little. Raises
    `UsageError` if there is nothing to fold, `Refused` while another process folds the day, or if the day folded before
    isn't as the ledger sealed it, `StorageError` for changes to a day that a newer release folded.
    """
    before = day_if_any(day)
    written = _fold(day, address)
    after = first_after(day)
    # The next folded day starts from this day's last snapshot, which may be a late arrival.
    if after is not None and not after.is_only_imported and _is_outdated(after, before, written):
        with suppress(Held):  # the process that folds it now, or the next fold, compares it with the late one
            _fold(day.root.day(after.day), address, anew=True)
    return written


def _is_outdated(after: HistoryDay, before: HistoryDay | None, written: HistoryDay) -> bool:
    if after.cluster_name != written.cluster_name:
        return False
    has_more = before is not None and len(before.snapshots) < len(written.snapshots)
    return has_more or (after.follows or "") < written.snapshots[-1].id


def _fold(day: Day, address: str | None, *, anew: bool = False) -> HistoryDay:
    """`anew`: even if the day's snapshots haven't changed."""
    root = day.root
    nothing = UsageError(f"cluster '{root.cluster}' has no normalized snapshot of {day}: there is nothing to fold")
    if day_if_any(day) is None and not any(one.is_written("normalize") for one in _of_day(day)):
        raise nothing  # before a lease makes the day's folder
    with (
        held(day.folder("result"), day.date, f"day {day} of cluster {root.cluster} is being folded") as lease,
        ledger_if_any(address or root.own_ledger_url) as ledger,
        _none_removed(day),
    ):
        before = day_if_any(day)
        if before is not None and ledger is not None and (why := why_no_sealed_day(ledger, day)):
            raise Refused(f"{why}: restore the day from a backup, or remove the file to fold the remaining snapshots")
        if before is not None and is_sealed_elsewhere(ledger, day, before):
            raise Refused(f"day {day} is sealed in a ledger, which also has the causes of its moves: give --ledger")
        folded = {} if before is None else {one.id: one for one in before.snapshots}
        manifests = _normalized(day, before)
        if not folded and not manifests:
            raise nothing
        seen = {**folded, **{id: _seen(root.snapshot(id)) for id in manifests}}
        name = before.cluster_name if before else _cluster_name(manifests)
        follows = _follows(day, name)
        last = follows or (before.follows if before else None)
        # A bundle without an owner in the last snapshot may have been unloaded at any time of that day.
        since = midnight(day_of(last)) if last else snapshot_moment(min(seen))
        steps = [] if ledger is None else _carried_out(ledger, name, since, day)
        is_whole = before is not None and before.columns >= COLUMNS and not any(damage(root, before, DAY_TABLES))
        is_as_before = before is not None and (seen, len(steps)) == (folded, before.steps)
        if before is not None and is_whole and is_as_before and follows in (before.follows, None) and not anew:
            return before
        if before is not None and before.columns > COLUMNS:
            raise StorageError(
                f"day {day} was written by a newer release, and would lose what that added: use that release"
            )
        _log.info("folding %s of day %s", count(len(seen), "snapshot"), day)
        earlier = None if follows is None else last_seen(root.snapshot(follows), name)
        tables = fold(_moments(root, seen, manifests, before, is_whole), earlier, steps)

        def result(files: Mapping[str, FoldedTable]) -> HistoryDay:
            made = HistoryDay(
                cluster=root.cluster,
                cluster_name=name,
                day=day.date,
                columns=COLUMNS,
                snapshots=tuple(seen[snapshot] for snapshot in sorted(seen)),
                follows=follows,
                steps=len(steps),
                summary=summary_of(tables["index"], tables["events"]),
                tables=files,
                imported=None if before is None else before.imported,
                # An import may still add to a day that has only imported moments.
                is_sealed=ledger is not None and any(one.manifest_sha256 for one in seen.values()),
            )
            if ledger is not None and made.is_sealed:
                seal_day(ledger, day, made)
            return made

        return write_day(day, tables, result, lease.require)


def fold_until(
    root: Root, today: str, address: str | None = None, begun: Callable[[str], None] = lambda _: None
) -> list[HistoryDay]:
    """Fold the days before today (`YYYYMMDD`, UTC), see `days_before`; `begun` is called with each day first.

    A day that can't be folded doesn't stop the others; the first such error is raised at the end. Raises as `run`.
    """
    folded, failures = [], list[AdvisorError]()
    for day in days_before(root, today):
        begun(day)
        try:
            folded.append(run(root.day(day), address))
        except AdvisorError as error:
            _log.error("day %s can't be folded: %s", day, error)
            failures.append(error)
    if failures:
        raise failures[0]
    return folded


def days_before(root: Root, today: str) -> list[str]:
    """The days before today (`YYYYMMDD`, UTC) that have a normalized snapshot, or were folded by an earlier release."""
    by_earlier_release = {day.day for day in folded_days(root)[0] if day.columns < COLUMNS}
    with_tables = {
        day
        for day, ids in groupby(root.snapshots(), day_of)
        if day < today and any(root.snapshot(id).is_written("normalize") for id in ids)
    }
    return sorted(day for day in by_earlier_release | with_tables if day < today)


def _normalized(day: Day, before: HistoryDay | None) -> dict[str, Manifest]:
    """The snapshots of a day that have tables, with their manifests, in order of time.

    Several clusters may have used one name in paths: only the cluster folded before counts, or else the last one.
    """
    with_tables = [one for one in _of_day(day) if one.is_written("normalize")]
    found = {one.id: read_manifest(one) for one in reversed(with_tables)}
    name = before.cluster_name if before else _cluster_name(found)
    return {id: one for id, one in found.items() if one.identity.cluster_name == name}


def _of_day(day: Day) -> Iterator[Snapshot]:
    """Newest first."""
    return takewhile(lambda snapshot: snapshot.day == day, day.root.newest_first(before=day.date + _AFTER))


def _cluster_name(manifests: dict[str, Manifest]) -> str:
    return next((one.identity.cluster_name for one in reversed(manifests.values())), "")


def _follows(day: Day, cluster_name: str) -> str | None:
    """The last snapshot before a day that has tables or was folded; None without one."""
    folded = last_before(day, cluster_name) or ""
    for snapshot in takewhile(lambda one: one.id > folded, day.root.newest_first(before=day.date)):
        if snapshot.is_written("normalize") and read_manifest(snapshot).identity.cluster_name == cluster_name:
            return snapshot.id
    return folded or None


@contextmanager
def _none_removed(day: Day) -> Iterator[None]:
    """Within the block, an error says so if one of the snapshots that a day is made of was removed meanwhile."""

    def is_there(snapshot: Snapshot) -> bool:
        return snapshot.is_written("capture") and snapshot.is_written("normalize")

    made_of = [*islice(day.root.newest_first(before=day.date), 1), *_of_day(day)]
    snapshots = [snapshot for snapshot in made_of if is_there(snapshot)]
    try:
        yield
    except Refused:
        raise
    except AdvisorError as error:
        removed = [snapshot for snapshot in snapshots if not is_there(snapshot)]
        if not removed:
            raise
        raise StorageError(
            f"snapshot {removed[0]} of cluster {day.root.cluster}, or its tables, were removed, as `snapshots prune` "
            f"does, while day {day} was being folded: fold the day again"
        ) from error


def _carried_out(ledger: Ledger, cluster_name: str, since: datetime, day: Day) -> list[ConfirmedStep]:
    """What plans did to a cluster from `since` to the end of a day, plus the delay with which snapshots may show it."""
    end = midnight(day.date) + timedelta(days=1)
    sent = confirmed_steps(ledger, cluster_name, _ms(since), _ms(end) + SEEN_LATE_MS)
    return [ConfirmedStep(int(step.sent_at_ms or 0), step.bundle, short(digest)) for step, digest in sent]


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _seen(snapshot: Snapshot) -> FoldedSnapshot:
    validation = validation_if_any(snapshot)
    return FoldedSnapshot(
        id=snapshot.id,
        manifest_sha256=str(result_sha256(snapshot, "capture")),
        validation_sha256=result_sha256(snapshot, "validate"),
        fit=validation is not None and validation.success,
    )


def _moments(
    root: Root,
    seen: Mapping[str, FoldedSnapshot],
    manifests: Mapping[str, Manifest],
    before: HistoryDay | None,
    is_whole: bool,
) -> Iterator[Moment]:
    """The moments of snapshots, in order of time.

    A snapshot unchanged since it was folded is read from the day, in a quarter of the time that its tables take, unless
    it follows a changed one and its policies are unknown: the day gives it those of the one before. From a damaged day,
    or one with an earlier release's columns, only snapshots without tables are read. Raises `StorageError` if these
    can't be read.
    """
    folded = {} if before is None else {one.id: one for one in before.snapshots}
    changed = {snapshot for snapshot in seen if folded.get(snapshot) != seen[snapshot]}
    first_changed = min(changed, default=None)

    def stays(snapshot: str) -> bool:
        follows = first_changed is not None and snapshot > first_changed
        return is_whole and snapshot not in changed and (knows_policies(manifests[snapshot]) or not follows)

    kept = {snapshot for snapshot in folded if snapshot not in manifests or stays(snapshot)}
    of_day = iter(()) if before is None or not kept else _of_folded(root, before, kept)
    for snapshot in sorted(seen):
        yield next(of_day) if snapshot in kept else normalized_moment(root.snapshot(snapshot), manifests[snapshot])


def _of_folded(root: Root, day: HistoryDay, snapshots: Collection[str]) -> Iterator[Moment]:
    """The moments of snapshots, read from their day."""
    try:
        return folded_moments(root, day, snapshots)
    except StorageError as error:
        gone = f"{count(len(snapshots), 'snapshot')} in it {'has' if len(snapshots) == 1 else 'have'} no tables"
        again = "import the day again" if day.is_only_imported else "remove this one to fold the remaining snapshots"
        raise StorageError(
            f"{root.day(day.day).result_file} is of a damaged day, and {gone} any more: `history verify` names the "
            f"damaged files; restore them from a backup, or {again}"
        ) from error
