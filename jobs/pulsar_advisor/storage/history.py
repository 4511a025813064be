"""The folded days of a cluster: a day exists if and only if its result file does."""

from __future__ import annotations

import re
from typing import Final

from upath import UPath

from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.model.cluster.snapshot_id import day_of
from pulsar_advisor.model.errors import AdvisorError, StorageError
from pulsar_advisor.storage.claim import remove_file, remove_folder, require_no_link
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.results import read_document
from pulsar_advisor.storage.root import RESULT, Root, Snapshot, names_in

_DAY: Final = re.compile(r"day=([0-9]{8})")


def day_path(root: Root, day: str) -> UPath:
    """Path of the result file of a day (`YYYYMMDD`, UTC)."""
    return root.day_folder("result", day) / RESULT


def day_if_any(root: Root, day: str) -> HistoryDay | None:
    """A folded day; None if it wasn't folded yet. Raises `StorageError` for a file that can't be read."""
    return read_day(root, day) if day_path(root, day).exists() else None


def read_day(root: Root, day: str) -> HistoryDay:
    """A folded day. Raises `UsageError` if it wasn't folded, `StorageError` for a file that can't be read."""
    path = day_path(root, day)
    found = read_document(path, HistoryDay)
    if found.day != day:
        raise StorageError(f"{path} is of another day, {found.day!r}: fold the day again")
    return found


def day_with(snapshot: Snapshot) -> HistoryDay | None:
    """The folded day that holds a snapshot; None without one. Raises as `day_if_any`."""
    day = day_if_any(snapshot.root, day_of(snapshot.id))
    return day if day is not None and any(one.id == snapshot.id for one in day.snapshots) else None


def days_between(root: Root, first: str, last: str) -> list[HistoryDay]:
    """The folded days from one to another, both included. Raises as `read_day`."""
    return [read_day(root, day) for day in _named(root) if first <= day <= last and day_path(root, day).exists()]


def last_before(root: Root, day: str, cluster_name: str) -> str | None:
    """The last folded snapshot of a cluster (by Pulsar's name) before a day; None without one."""
    for name in reversed([one for one in _named(root) if one < day]):
        found = day_if_any(root, name)
        if found is not None and found.cluster_name == cluster_name and found.snapshots:
            return found.snapshots[-1].id
    return None


def first_after(root: Root, day: str) -> HistoryDay | None:
    """The first folded day after a day; None without one."""
    days = (day_if_any(root, name) for name in _named(root) if name > day)
    return next((found for found in days if found is not None), None)


def folded_days(root: Root, last: int | None = None) -> tuple[list[HistoryDay], list[str]]:
    """The folded days, or only the last ones, oldest first; and why some can't be read."""
    days, unreadable = list[HistoryDay](), list[str]()
    for name in reversed(_named(root)):
        if last is not None and len(days) + len(unreadable) == last:
            break
        try:
            day = day_if_any(root, name)
        except (AdvisorError, OSError) as error:
            unreadable.append(f"{name} can't be read: {error}")
        else:
            days += [] if day is None else [day]
    return days[::-1], unreadable[::-1]


def days_with_files(root: Root) -> list[str]:
    """The days with files in any table, oldest first: folded days, and remainders of others."""
    found = (name for table in _tables(root) for name in _named(root, table))
    return sorted(set(found))


def remove_day(root: Root, day: str) -> None:
    """Remove a day: its result first, so that none ever exists in part. Raises `StorageError`, `Held`."""
    folders = [root.day_folder(table, day) for table in _tables(root) if table != "result"]
    require_no_link(root, day_path(root, day), *folders)
    with held(day_path(root, day).parent, day, f"day {day} of cluster {root.cluster} is being folded"):
        remove_file(day_path(root, day))
        for folder in folders:
            remove_folder(folder)
    remove_folder(day_path(root, day).parent)


def _tables(root: Root) -> list[str]:
    """Every folder that contains days, including that of the results."""
    parent = root.location / "history"
    return sorted(name for name in names_in(parent) if (parent / name).is_dir())


def _named(root: Root, table: str = "result") -> list[str]:
    """The days that have a folder, oldest first; one listing, however many there are."""
    names = names_in(root.day_folder(table, "").parent)
    return sorted(found[1] for name in names if (found := _DAY.fullmatch(name)))
