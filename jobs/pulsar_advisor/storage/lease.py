"""Marks a folder as being written: a lease file in it names the process, which renews it until it is done.

A writer that was silent for too long, for instance suspended, may have been replaced. So each claim has a nonce, which
is compared before the file is renewed or removed, and before anything of a successor's could be replaced. How long a
writer was silent is the age of its file by the store's own clock, since two hosts' clocks may differ.
"""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from fcntl import LOCK_EX, LOCK_NB, flock
from typing import IO, TYPE_CHECKING, Final
from uuid import uuid4

import msgspec
from upath import UPath

from pulsar_advisor.model.errors import AdvisorError, Refused, attempting
from pulsar_advisor.storage.files import is_local, open_file, write_file
from pulsar_advisor.storage.process import Process, has_ended, is_alive, this_process
from pulsar_advisor.storage.store_clock import age

if TYPE_CHECKING:
    from pulsar_advisor.documents.document import Document

LEASE: Final = "lease.json"
RENEW_EVERY: Final = timedelta(minutes=1)
EXPIRES_AFTER: Final = timedelta(minutes=15)
_LARGEST_BYTES: Final = 1 << 16
"""Of a lease that is read; a whole one has a few hundred."""
_LOCK_WAIT_S: Final = 5.0
_LOCK_POLL_S: Final = 0.05


class Held(Refused):
    """Another process is writing the folder at this moment."""


class Lease:
    """This process's claim on one folder, or, with its `nonce`, the claim of the process that it works for."""

    def __init__(self, snapshot: str, folder: UPath, nonce: str | None = None) -> None:
        self.snapshot = snapshot
        self.folder = folder
        self._path = folder / LEASE
        self.nonce = nonce or uuid4().hex
        self._lock = threading.Lock()
        self._renewed_at = time.monotonic()

    def content(self) -> bytes:
        """The content of the lease file if renewed now."""
        writer = this_process()
        return json.dumps(
            {
                "process": writer.id,
                "host": writer.host,
                "namespace": writer.namespace,
                "began": writer.began,
                "nonce": self.nonce,
                "renewed_at_ms": int(datetime.now(UTC).timestamp() * 1000),  # for people, and for releases before 0.2
            }
        ).encode()

    def renew(self) -> None:
        """Signal that this process is still writing; cheap, so call it often. Raises `Refused` as `require` does."""
        with self._lock:
            if time.monotonic() - self._renewed_at < RENEW_EVERY.total_seconds():
                return
            self._renewed_at = time.monotonic()
            self.require()
            write_file(self._path, self.content())

    def require(self) -> None:
        """Raises `Refused` if another process has taken the folder over."""
        if not self.is_ours():
            raise Refused(
                f"{self.folder} was taken over by another process, because this one did not renew its lease for "
                f"{EXPIRES_AFTER // timedelta(minutes=1)} minutes: the other process continues"
            )

    def write(self, path: UPath, content: bytes) -> None:
        """Write a whole file as the holder of the folder. Raises `Refused` as `require` does, `StorageError`."""
        self.require()
        write_file(path, content)

    def is_ours(self) -> bool:
        """Whether the lease file is still the one this claim wrote."""
        with attempting(f"read {self._path}"), suppress(FileNotFoundError):
            return _written(read_lease(self._path)).nonce == self.nonce
        return False

    def give_up(self) -> None:
        """Remove the lease file, unless another process, or anything else, has replaced it."""
        with suppress(OSError):
            content = read_lease(self._path)
            if _written(content).nonce == self.nonce:
                _take_away(self._path, content)


@contextmanager
def held(folder: UPath, snapshot: str, work: str) -> Iterator[Lease]:
    """Hold the folder of a stage's result while everything that the result depends on is written.

    Raises `Held`, naming the `work`, while another writer holds it. A writer that is gone, or has not renewed its
    lease for `EXPIRES_AFTER`, holds nothing: the next one replaces what it wrote.
    """
    path, lease = folder / LEASE, Lease(snapshot, folder)
    while not _create(path, lease.content()):
        # Without a file now, its writer has just ended, or has been replaced.
        with attempting(f"take over {path}"), suppress(FileNotFoundError):
            content = read_lease(path)
            if is_held(content, age(path)):
                raise Held(
                    f"{work} by another process now, named in {path}: wait until it ends or, if its host is gone, "
                    f"{EXPIRES_AFTER // timedelta(minutes=1)} minutes after it last renewed its lease"
                )
            _take_away(path, content)
    try:
        with repeated(lease.renew, RENEW_EVERY.total_seconds()):
            yield lease
    finally:
        lease.give_up()


def write_once(path: UPath, snapshot: str, work: str, make: Callable[[Lease], Document]) -> None:
    """Produce a stage's result and write its file, unless it exists. Raises as `held` and `require` do."""
    if path.exists():
        return
    with held(path.parent, snapshot, work) as lease:
        if not path.exists():  # another process may have written it before we held the lease
            lease.write(path, make(lease).content())


@contextmanager
def repeated(work: Callable[[], None], every_s: float) -> Iterator[None]:
    """Call `work` at intervals from another thread until the block ends, however long the block waits.

    An error from it does not end the block: a lost lease is detected before the next write.
    """
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(every_s):
            with suppress(AdvisorError):
                work()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def read_lease(path: UPath) -> bytes:
    """The content of a lease file. Raises `OSError` for anything but a file: a link may lead nowhere, and stay."""
    if is_local(path) and path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link", path.path)
    with open_file(path) as file:
        return file.read(_LARGEST_BYTES)


def is_held(content: bytes, silent_for: timedelta) -> bool:
    """Whether the writer of a lease may still be active; `silent_for` is the age of its file by the store's clock."""
    if silent_for > EXPIRES_AFTER:
        return False
    written = _written(content)
    writer = None
    if written.host is not None and written.process is not None:
        writer = Process(written.host, written.process, written.namespace, written.began)
    if silent_for < -EXPIRES_AFTER:  # a stamp from the future would stay young; the clock may have been set back
        return writer is not None and is_alive(writer)
    return writer is None or not has_ended(writer)  # None: it is just being written, or damaged


class _Written(msgspec.Struct):
    """The part of a lease that identifies its writer."""

    host: str | None = None
    process: int | None = None
    namespace: str = ""
    """Releases before 0.2 wrote none: such a writer counts as active until its lease expires."""
    began: str = ""
    nonce: str = ""


def _written(content: bytes) -> _Written:
    try:
        return msgspec.json.decode(content, type=_Written)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Written()


def _create(path: UPath, content: bytes) -> bool:
    """Write this process's lease if there is none. On an object store two simultaneous claims may both succeed."""
    if not is_local(path):
        if path.exists():
            return False
        write_file(path, content)
        return True
    with attempting(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = path.open("xb")
        except FileExistsError:
            return False
        try:
            with file:
                file.write(content)
        except BaseException:
            path.unlink(missing_ok=True)  # an empty lease would count as held
            raise
    return True


def _take_away(path: UPath, content: bytes) -> None:
    """Remove the lease with this content, unless another process has replaced it.

    Of several who would, one at a time looks and removes, so that none removes the lease that the first then writes.
    Where it can't be locked, the removal of a living lease is detected before a result is written.
    """
    with ExitStack() as opened:
        if is_local(path):
            with suppress(OSError):
                _lock(opened.enter_context(path.open("r+b")))
        if read_lease(path) == content:
            path.unlink()


def _lock(file: IO[bytes]) -> None:
    """Lock a file once it is free. Raises `OSError` if files can't be locked here, or it stays locked too long."""
    until_s = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            return flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:  # whoever has it may have been suspended
                raise
        time.sleep(_LOCK_POLL_S)
