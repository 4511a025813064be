"""The folded days of a cluster: a day exists if and only if its result file does."""

from __future__ import annotations

import re
from typing import Final

from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.model.errors import AdvisorError, StorageError
from pulsar_advisor.storage.claim import remove_file, remove_folder, require_no_link
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.results import read_document
from pulsar_advisor.storage.root import Day, Root, Snapshot, names_in

_DAY: Final = re.compile(r"day=([0-9]{8})")


def day_if_any(day: Day) -> HistoryDay | None:
    """A folded day; None if it wasn't folded yet. Raises `StorageError` for a file that can't be read."""
    return read_day(day) if day.result_file.exists() else None


def read_day(day: Day) -> HistoryDay:
    """A folded day. Raises `UsageError` if it wasn't folded, `StorageError` for a file that can't be read."""
    found = read_document(day.result_file, HistoryDay)
    if found.day != day.date:
        raise StorageError(f"{day.result_file} is of another day, {found.day!r}: fold the day again")
    return found


def day_with(snapshot: Snapshot) -> HistoryDay | None:
    """The folded day that holds a snapshot; None without one. Raises as `day_if_any`."""
    day = day_if_any(snapshot.day)
    return day if day is not None and any(one.id == snapshot.id for one in day.snapshots) else None


def days_between(root: Root, first: str, last: str) -> list[HistoryDay]:
    """The folded days from one to another, both included. Raises as `read_day`."""
    return [read_day(day) for day in _named(root) if first <= day.date <= last and day.result_file.exists()]


def last_before(day: Day, cluster_name: str) -> str | None:
    """The last folded snapshot of a cluster (by Pulsar's name) before a day; None without one."""
    days = (day_if_any(one) for one in reversed(_named(day.root)) if one.date < day.date)
    last = (one.snapshots[-1].id for one in days if one and one.cluster_name == cluster_name and one.snapshots)
    return next(last, None)


def first_after(day: Day) -> HistoryDay | None:
    """The first folded day after a day; None without one."""
    days = (day_if_any(one) for one in _named(day.root) if one.date > day.date)
    return next((found for found in days if found is not None), None)


def folded_days(root: Root, last: int | None = None) -> tuple[list[HistoryDay], list[str]]:
    """The folded days, or only the last ones, oldest first; and why some can't be read."""
    days, unreadable = list[HistoryDay](), list[str]()
    for day in reversed(_named(root)):
        if last is not None and len(days) + len(unreadable) == last:
            break
        try:
            found = day_if_any(day)
        except (AdvisorError, OSError) as error:
            unreadable.append(f"{day} can't be read: {error}")
        else:
            days += [] if found is None else [found]
    return days[::-1], unreadable[::-1]


def days_with_files(root: Root) -> list[str]:
    """The days with files in any table, oldest first: folded days, and remainders of others."""
    return sorted({day.date for table in _tables(root) for day in _named(root, table)})


def remove_day(day: Day) -> None:
    """Remove a day: its result first, so that none ever exists in part. Raises `StorageError`, `Held`."""
    folders = [day.folder(table) for table in _tables(day.root) if table != "result"]
    require_no_link(day.root, day.result_file, *folders)
    with held(day.folder("result"), day.date, f"day {day} of cluster {day.root.cluster} is being folded"):
        remove_file(day.result_file)
        for folder in folders:
            remove_folder(folder)
    remove_folder(day.folder("result"))


def _tables(root: Root) -> list[str]:
    """Every folder that contains days, including that of the results."""
    parent = root.location / "history"
    return sorted(name for name in names_in(parent) if (parent / name).is_dir())


def _named(root: Root, table: str = "result") -> list[Day]:
    """The days that have a folder, oldest first; one listing, however many there are."""
    names = sorted(names_in(root.of_cluster(f"history/{table}")))
    return [root.day(found[1]) for name in names if (found := _DAY.fullmatch(name))]
