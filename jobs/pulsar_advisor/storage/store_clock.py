"""The clock of a store: one for all hosts that use it, however much their own clocks differ.

A file system (on a network, the file server) or an object store stamps what is written to it. So the stamps of two
files say which was written later, and by how much, whoever wrote them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from os import fstat
from typing import Final
from uuid import uuid4

from upath import UPath

from pulsar_advisor.model.elapsed import elapsed_s
from pulsar_advisor.model.errors import attempting
from pulsar_advisor.storage.files import is_local

ASK_EVERY_S: Final = 5.0
_ASKED_WITHIN_S: Final = 1.0
"""An answer that took longer isn't kept: this process may have been suspended, before it was given or after."""

_FIRST_S: Final = datetime.min.replace(tzinfo=UTC).timestamp()
_LAST_S: Final = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()


def store_time(folder: UPath) -> datetime:
    """The store's time now: the stamp of a file written to the folder, and removed again. Raises `StorageError`."""
    with attempting(f"write to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        if is_local(folder):
            with tempfile.TemporaryFile(dir=folder.path) as file:
                return _moment(fstat(file.fileno()).st_mtime)
        probe = folder / f".time.{uuid4().hex}"
        probe.write_bytes(b"")
        try:
            return written_at(probe)
        finally:
            probe.unlink(missing_ok=True)


def written_at(path: UPath) -> datetime:
    """When a file was last written, by the store's clock. Raises `OSError` if it doesn't exist."""
    if not is_local(path):
        path.fs.invalidate_cache(path.parent.path)  # another host may have written it since it was listed
    return _moment(path.stat().st_mtime)


def _moment(stamp_s: float) -> datetime:
    """The nearest moment to a stamp (epoch seconds): those of some file systems reach beyond Python's years."""
    return datetime.fromtimestamp(min(max(stamp_s, _FIRST_S), _LAST_S), UTC)


def age(path: UPath) -> timedelta:
    """How long ago a file or local folder was last written. Raises `OSError` if it doesn't exist, `StorageError`."""
    return store_time(path.parent) - written_at(path)


def carried_on(ask: Callable[[], int], elapsed_s: Callable[[], float] = elapsed_s) -> Callable[[], int]:
    """A clock (epoch milliseconds) that is asked every few seconds; in between, this machine counts the time."""
    asked: tuple[int, float] | None = None

    def now_ms() -> int:
        nonlocal asked
        known, now_s = asked, elapsed_s()
        if known is None or now_s - known[1] >= ASK_EVERY_S:
            known = ask(), now_s
            asked = known if elapsed_s() - now_s < _ASKED_WITHIN_S else None
        return known[0] + round(1000 * (now_s - known[1]))

    return now_ms
