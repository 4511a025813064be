"""Whole files: written so that they appear complete or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

from upath import UPath

from pulsar_advisor.model.errors import StorageError, UsageError, attempting, refusal
from pulsar_advisor.model.text.plain_text import plain

LARGEST_FILE_BYTES: Final = 2 << 30
"""For a file that is read as a whole. A capture holds each file in memory while it makes it."""

_BLOCK_BYTES: Final = 4 * 2**20


def refused_by_storage(error: OSError) -> StorageError:
    """The error for a request that a file system or an object store refused for an unknown reason.

    Any request can fail at any moment (503, quota, network file systems), even a test whether a file exists.
    """
    place = plain(str(error.filename or "the output or a file of the root"))
    return StorageError(
        f"can't read or write {place}: {refusal(error)}: check space, permissions and quota, or try again "
        "if it is just busy"
    )


def sha256_hex(content: bytes) -> str:
    """SHA-256 of the content, in lower-case hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def sha256_of(pieces: Iterable[bytes]) -> str:
    """SHA-256 of content that arrives in pieces, in lower-case hexadecimal."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def sha256_of_file(path: UPath) -> str:
    """SHA-256 of a file of any size, in lower-case hexadecimal. Raises `OSError`."""
    with open_file(path) as content:
        return sha256_of(iter(lambda: content.read(_BLOCK_BYTES), b""))


def is_local(path: UPath) -> bool:
    """Whether a path is one of this machine's files."""
    return path.protocol in ("", "file")


@contextmanager
def without_empty_folders(folder: UPath) -> Iterator[None]:
    """Remove this folder and those parents that the block created, if they end up empty."""
    local = is_local(folder)
    new = [one for one in (folder, *folder.parents) if not one.exists()] if local else []
    try:
        yield
    finally:
        for one in new:
            with suppress(OSError):
                one.rmdir()


def write_file(path: UPath, content: bytes) -> None:
    """Write a whole file, visible only when it is complete, and on disk afterwards. Raises `StorageError`.

    Whatever has its name is replaced: in the root, somebody may have put a pipe there, which blocks its writer.
    """
    write_chunks(path, (content,))


def write_chunks(path: UPath, chunks: Iterable[bytes]) -> None:
    """The same for content that arrives in pieces."""
    with attempting(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_local(path):
            # Another process may be writing the same file: the last to finish replaces it whole. In two containers
            # both may have the same process id.
            temporary = path.with_name(f".{path.name}.{uuid4().hex}.partial")
            mode = None
            with suppress(OSError):
                # A script may be executable, a report one reader's alone from its first moment. Set-user-ID, on a file
                # that others have put there, would make it root's program.
                mode = Path(path.path).stat().st_mode & 0o777
            try:
                created = partial(os.open, mode=0o666 if mode is None else mode)
                with open(temporary.path, "wb", opener=created) as file:
                    if mode is not None:
                        with suppress(OSError):
                            os.fchmod(file.fileno(), mode)
                    file.writelines(chunks)
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary.path).replace(path.path)  # a `file:` URL has no method for it
            except BaseException:
                temporary.unlink(missing_ok=True)  # on a full disk, each try would leave another file
                raise
            _sync_folder(path.parent)
        else:
            path.write_bytes(b"".join(chunks))  # in one call: an object store shows only complete objects


def write_output(path: UPath, chunks: Iterable[bytes]) -> None:
    """The same to the place that an operator named, which may be a device or a pipe: that stays what it is."""
    if is_local(path) and path.exists() and not _may_be_replaced(path):
        with attempting(f"write {path}"), path.open("ab") as file:  # the caller may have written to it
            file.writelines(chunks)
    else:
        write_chunks(path, chunks)


def _may_be_replaced(path: UPath) -> bool:
    """Whether a local path is a regular file's own name.

    Replacing a device or a pipe, such as /dev/null, by a file would break it for the whole machine. So would replacing
    /dev/stdout, which counts as a regular file while the caller writes its output to one.
    """
    folder = os.path.realpath(path.parent.path)
    return path.is_file() and folder != "/dev" and not folder.startswith("/proc/")


def why_not_writable(folder: UPath) -> str | None:
    """Why no file can be written into a folder; None if one can. The folder is left as it was."""
    probe = folder / ".doctor"
    try:
        with without_empty_folders(folder):
            write_file(probe, b"")
            probe.unlink()
    except (StorageError, OSError) as error:
        return str(error)
    return None


def _sync_folder(folder: UPath) -> None:
    """Sync a folder to disk: only then does a new name in it survive a power failure. Some file systems can't."""
    number = os.open(folder.path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(number)


def open_file(path: UPath) -> BinaryIO:
    """A file opened for reading. Raises `OSError` unless it is a regular one.

    In the root, somebody may have put a pipe in its place, which blocks its reader, or a link to an endless device.
    """
    if not is_local(path):
        return path.open("rb")
    file = open(path.path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", path.path)
    return file


def read_file(path: UPath, made_by: str) -> bytes:
    """A whole file. Raises `UsageError` naming the stage that produces it if it doesn't exist."""
    with attempting(f"read {path}"):
        try:
            opened = open_file(path)
        except FileNotFoundError as error:
            raise UsageError(f"{path} does not exist: run `{made_by}` first") from error
        with opened as file:
            if (size := file.seek(0, os.SEEK_END)) > LARGEST_FILE_BYTES:
                raise StorageError(f"{path} has {size:,} bytes, more than `{made_by}` ever writes into a file")
            file.seek(0)
            return file.read(size)  # not what somebody adds meanwhile
