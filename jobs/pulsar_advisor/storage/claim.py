"""The folder of a snapshot that is being written, and the remainders of interrupted captures.

A folder without a manifest is either being written or a remainder; its lease shows which. A capture that ends normally
removes the lease after the manifest is written.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Final

from upath import UPath

from pulsar_advisor.model.cluster.snapshot_id import snapshot_id, snapshot_moment
from pulsar_advisor.model.errors import StorageError, UsageError, attempting
from pulsar_advisor.storage.files import is_local, write_file
from pulsar_advisor.storage.lease import EXPIRES_AFTER, LEASE, RENEW_EVERY, Lease, is_held, read_lease, repeated
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot
from pulsar_advisor.storage.store_clock import age

CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""How far the clocks of capturing machines may differ: a snapshot from the future would stay `latest` for long."""

_log = logging.getLogger(__name__)


@contextmanager
def claimed(root: Root, moment: datetime) -> Iterator[Lease]:
    """A new folder for the capture that starts now, named after the next free second.

    Raises `StorageError` if there is a snapshot from the future, which would stay the latest one.
    """
    newest = next(root.newest_first(), None)
    if newest is not None and (ahead := snapshot_moment(newest.id) - moment) > CLOCK_TOLERANCE:
        raise StorageError(
            f"snapshot {newest} of cluster '{root.cluster}' is {ahead // timedelta(minutes=1)} min in the future, and "
            "would stay the latest: the clock of this machine was set back, or that one was captured with a clock "
            f"ahead. Set the clock, or remove {newest.folder('raw')}"
        )
    while (lease := _claim(root.snapshot(snapshot_id(moment)))) is None:
        moment += timedelta(seconds=1)
    with _held(lease):
        yield lease


@contextmanager
def claimed_as(snapshot: Snapshot) -> Iterator[Lease]:
    """The folder of a snapshot from elsewhere. Raises `UsageError` if it is taken, or its writer was just killed."""
    lease = _claim(snapshot)
    if lease is None:
        folder, taken = snapshot.folder("raw"), f"snapshot {snapshot} of cluster '{snapshot.root.cluster}'"
        if (folder / MANIFEST).exists():
            raise UsageError(f"{taken} already exists: {folder}")
        raise UsageError(
            f"{taken} is being written to {folder} by another process now: wait until it ends or, if it was killed, "
            f"{EXPIRES_AFTER // timedelta(minutes=1)} minutes"
        )
    with _held(lease):
        yield lease


@contextmanager
def _held(lease: Lease) -> Iterator[None]:
    """Remove the folder if the block fails before there is a manifest, unless another process has taken it over."""
    try:
        with repeated(lease.renew, RENEW_EVERY.total_seconds()):
            yield
        lease.give_up()
    except BaseException:
        if lease.is_ours() and not (lease.folder / MANIFEST).exists():
            remove_folder(lease.folder)
        raise


def remove_remainders(root: Root) -> list[str]:
    """Remove the remainders of interrupted captures of this cluster; returns the ids of the unfinished snapshots.

    One that can't be judged or removed stays, with a warning. Raises `StorageError` if they can't be listed.
    """
    parent = root.of_cluster("raw")
    removed = []
    with attempting(f"clean up under {parent}"):
        existing = {*root.snapshots()}  # asked for in parallel, unlike below
        is_linked = link_to(root, parent / MANIFEST) is not None
        others = [] if is_linked else [id for id in root.folders() if id not in existing]
    for id in others:
        folder = root.snapshot(id).folder("raw")
        try:
            if not _is_being_written(folder) and not (folder / MANIFEST).exists():
                remove_folder(folder)
                removed.append(id)
        except (StorageError, OSError) as error:  # it does no harm, and may be another user's
            _log.warning("%s has no manifest, and stays: %s", folder, error)
    return removed


def require_no_link(root: Root, *folders: UPath) -> None:
    """Raise `StorageError` if one of these folders is reached through a link: nothing outside the root is removed."""
    for link in filter(None, (link_to(root, folder) for folder in folders)):
        raise StorageError(f"{link} is a link, and its target is not removed: replace the link with the folder itself")


def link_to(root: Root, folder: UPath) -> UPath | None:
    """The first link between a root and one of its folders, which may itself be one; None without any."""
    inside = [one for one in folder.parents if one.is_relative_to(root.path) and one != root.path]
    return next((one for one in inside if one.is_symlink()), None) if is_local(folder) else None


def remove_folder(folder: UPath) -> None:
    """Remove a folder with everything in it, the lease last; if it is a link, only the link. Raises `StorageError`."""
    # Another process may remove it, too.
    with attempting(f"remove {folder}", "remove it manually"), suppress(FileNotFoundError):
        if folder.is_symlink():
            remove_file(folder)
            return
        children = sorted(folder.iterdir(), key=lambda child: child.name == LEASE) if folder.is_dir() else []
        for child in children:
            if child.is_dir():
                remove_folder(child)
            else:
                remove_file(child)
        if folder.is_dir():
            folder.rmdir()


def remove_file(path: UPath) -> None:
    """Remove a file, unless it is gone. Raises `StorageError`."""
    with attempting(f"remove {path}", "remove it manually"), suppress(FileNotFoundError):
        path.unlink()


def remove_other_files(root: Root, folder: UPath, kept: Collection[str]) -> None:
    """Remove a folder's files with other names than these, unless it is, or is reached through, a link."""
    with attempting(f"remove what {folder} held before"):
        if folder.is_dir() and not folder.is_symlink() and link_to(root, folder) is None:
            for file in list(folder.iterdir()):
                if file.name not in kept:
                    file.unlink(missing_ok=True)


def _is_being_written(folder: UPath) -> bool:
    with suppress(OSError):
        return is_held(read_lease(folder / LEASE), age(folder / LEASE))
    with suppress(FileNotFoundError):  # no readable lease: just being claimed, or being removed
        files = [file for file in folder.iterdir() if not file.is_symlink()]
        return min(abs(age(file)) for file in files or [folder]) <= EXPIRES_AFTER
    return True  # it is being removed at this moment


def _claim(snapshot: Snapshot) -> Lease | None:
    """Make the folder ours; None if it is taken. On an object store two simultaneous claims may both succeed."""
    folder = snapshot.folder("raw")
    with attempting(f"write {folder}"):
        try:
            if is_local(folder):
                folder.mkdir(parents=True, exist_ok=False)
            elif folder.exists():
                return None
        except FileExistsError:
            return None
    lease = Lease(snapshot.id, folder)
    try:
        write_file(folder / LEASE, lease.content())
    except BaseException:
        with suppress(OSError):  # on a full disk, an empty folder would look like one that is being claimed
            lease.give_up()  # it may have its name already
            folder.rmdir()
        raise
    return lease
