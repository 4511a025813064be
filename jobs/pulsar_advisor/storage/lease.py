"""Who is writing a folder: a lease file in it names process and host, and its writer renews it until the end."""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

from upath import UPath

from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.storage.files import write_file

LEASE: Final = "lease.json"
RENEW_EVERY: Final = timedelta(minutes=1)
EXPIRES_AFTER: Final = timedelta(minutes=15)
"""Longer than the longest single read of a capture (`BODY_TIMEOUT_S`), after each of which it may renew."""


class Lease:
    """The claim of this process on one snapshot's folder."""

    def __init__(self, snapshot: str, folder: UPath) -> None:
        self.snapshot = snapshot
        self.folder = folder
        self._lock = threading.Lock()
        self._renewed_at = time.monotonic()

    def renew(self) -> None:
        """Say that we are still writing; cheap, to be called often."""
        with self._lock:
            if time.monotonic() - self._renewed_at < RENEW_EVERY.total_seconds():
                return
            self._renewed_at = time.monotonic()
        write_file(self.folder / LEASE, lease_content(datetime.now(UTC)))


@contextmanager
def held(folder: UPath, snapshot: str, work: str) -> Iterator[None]:
    """Hold the folder of a stage's result while all that the result stands for is written.

    Raises `Refused`, naming the `work`, while another writer holds it. A writer that is gone, or has not renewed its
    lease for `EXPIRES_AFTER`, holds nothing: what it wrote is for the next one to replace.
    """
    path = folder / LEASE
    while not _create(path):
        try:
            content, began_at = path.read_bytes(), datetime.fromtimestamp(path.stat().st_mtime, UTC)
            now = datetime.now(UTC)
            if is_held(content, now, otherwise=now - began_at <= EXPIRES_AFTER):
                raise Refused(
                    f"{work} by another process at this moment, {path} says which: wait until it has ended, or "
                    f"{EXPIRES_AFTER // timedelta(minutes=1)} minutes from its last sign of life if its host is gone"
                )
            _take_away(path, content)
        except FileNotFoundError:
            continue  # its writer has ended this moment, or somebody else has taken its place
        except OSError as error:
            raise StorageError(f"can't take over {path}: {error.strerror or error}") from error
    lease, ended = Lease(snapshot, folder), threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_EVERY.total_seconds()):
            with suppress(StorageError):
                lease.renew()

    renewing = threading.Thread(target=renew, daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()
        path.unlink(missing_ok=True)


def lease_content(moment: datetime) -> bytes:
    """The lease of this process, renewed at a moment."""
    writer = {
        "process": os.getpid(),
        "host": platform.node(),
        "renewed_at_ms": int(moment.timestamp() * 1000),
    }
    return json.dumps(writer).encode()


def is_held(content: bytes, now: datetime, *, otherwise: bool) -> bool:
    """Whether the writer of a lease may still be at work; `otherwise` if its content doesn't tell."""
    try:
        lease = json.loads(content)
        renewed_at = datetime.fromtimestamp(lease["renewed_at_ms"] / 1000, UTC)
        writer, host = int(lease["process"]), str(lease["host"])
    except (ValueError, KeyError, TypeError):
        return otherwise
    if now - renewed_at > EXPIRES_AFTER:
        return False
    return host != platform.node() or _is_alive(writer)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _create(path: UPath) -> bool:
    """Write our lease where there is none. On an object store two claims at the same moment may both succeed."""
    content = lease_content(datetime.now(UTC))
    if path.protocol not in ("", "file"):
        if path.exists():
            return False
        write_file(path, content)
        return True
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    except OSError as error:
        raise StorageError(f"can't write {path}: {error.strerror or error}") from error
    return True


def _take_away(path: UPath, content: bytes) -> None:
    """Remove the lease with this content; one that somebody else put there since goes back."""
    aside = path.with_name(f".{path.name}.{uuid4().hex}")
    path.rename(aside)
    if aside.read_bytes() == content:
        aside.unlink()
    else:
        aside.rename(path)
