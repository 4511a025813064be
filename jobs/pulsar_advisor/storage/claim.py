"""A folder of its own for a snapshot that is being written, and what is left of captures that were interrupted.

A folder without a manifest is either being written or a remainder. The lease in it tells which. A capture that ends
orderly removes it after the manifest is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from upath import UPath

from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.lease import EXPIRES_AFTER, LEASE, Lease, is_held, lease_content
from pulsar_advisor.storage.root import MANIFEST, Root, snapshot_id


@contextmanager
def claimed(root: Root, moment: datetime) -> Iterator[Lease]:
    """A folder of our own for the capture that starts now: of the next second while one is taken."""
    while not _claim(folder := root.folder("raw", snapshot_id(moment))):
        moment += timedelta(seconds=1)
    with _held(folder, snapshot_id(moment)) as lease:
        yield lease


@contextmanager
def claimed_as(root: Root, snapshot: str) -> Iterator[Lease]:
    """The folder of a snapshot that comes from elsewhere. Raises `UsageError` if it is taken."""
    folder = root.folder("raw", snapshot)
    if not _claim(folder):
        raise UsageError(f"snapshot {snapshot} of cluster '{root.cluster}' is there already: {folder}")
    with _held(folder, snapshot) as lease:
        yield lease


@contextmanager
def _held(folder: UPath, snapshot: str) -> Iterator[Lease]:
    """Whatever ends the block before there is a manifest takes the folder with it."""
    try:
        yield Lease(snapshot, folder)
        _unlink(folder / LEASE)
    except BaseException:
        if not (folder / MANIFEST).exists():
            remove_folder(folder)
        raise


def remove_remainders(root: Root, now: datetime) -> list[str]:
    """Remove what interrupted captures left of this cluster, and say which snapshots they would have become."""
    parent = root.path / "raw" / f"cluster={root.cluster}"
    removed = []
    try:
        folders = [child for child in parent.iterdir() if child.name.startswith("snapshot=")] if parent.is_dir() else []
        for folder in folders:
            if not (folder / MANIFEST).exists() and not _is_being_written(folder, now):
                remove_folder(folder)
                removed.append(folder.name.removeprefix("snapshot="))
    except OSError as error:
        raise StorageError(f"can't clean up under {parent}: {error.strerror or error}") from error
    return sorted(removed)


def remove_folder(folder: UPath) -> None:
    """Remove a folder with everything in it, the lease last. Raises `StorageError`."""
    try:
        children = sorted(folder.iterdir(), key=lambda child: child.name == LEASE) if folder.is_dir() else []
        for child in children:
            if child.is_dir() and not child.is_symlink():
                remove_folder(child)
            else:
                _unlink(child)
        if folder.is_dir():
            folder.rmdir()
    except OSError as error:
        raise StorageError(f"can't remove {folder}: {error.strerror or error}: remove it by hand") from error


def _is_being_written(folder: UPath, now: datetime) -> bool:
    try:
        lease = (folder / LEASE).read_bytes()
    except OSError:
        lease = b""
    # No readable lease: claimed this moment, or being removed. The folder's name tells how old it is.
    is_young = folder.name.removeprefix("snapshot=") > snapshot_id(now - EXPIRES_AFTER)
    return is_held(lease, now, otherwise=is_young)


def _claim(folder: UPath) -> bool:
    """Make the folder ours; false if it is taken. On an object store two claims at the same moment may both succeed."""
    try:
        if folder.protocol in ("", "file"):
            folder.mkdir(parents=True, exist_ok=False)
        elif folder.exists():
            return False
    except FileExistsError:
        return False
    except OSError as error:
        raise StorageError(f"can't write {folder}: {error.strerror or error}") from error
    write_file(folder / LEASE, lease_content(datetime.now(UTC)))
    return True


def _unlink(path: UPath) -> None:
    try:
        path.unlink()
    except FileNotFoundError:
        return
