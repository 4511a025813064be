"""The files of a raw snapshot: JSON lines, compressed as they arrive, one zstd frame per file."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
import zstandard

from pulsar_advisor.documents.manifest import File

COMPRESSION_LEVEL: Final = 3
LINES_AT_ONCE: Final = 10_000
"""Lines encoded per batch: a namespace may have a million topics, whose names take less memory than their lines."""

_ENCODER = msgspec.json.Encoder()

Write = Callable[[str, bytes], None]
"""Writes a whole file at a path below the snapshot's folder. Raises `StorageError`, or `Refused` if the folder was
taken over."""


class CompleteFile(NamedTuple):
    """The bytes of one file, and its number of lines."""

    content: bytes
    rows: int


class RawFile:
    """One file of JSON lines, kept compressed in memory until it is complete. Lines may come from several threads."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL, write_checksum=True).compressobj()
        self._compressed = bytearray()
        self._lock = threading.Lock()
        self._rows = 0

    def extend(self, lines: Sequence[Any]) -> None:
        """Add lines: dictionaries or msgspec structs."""
        encoded = _ENCODER.encode_lines(lines)
        with self._lock:
            self._compressed += self._compressor.compress(encoded)
            self._rows += len(lines)

    def finish(self) -> CompleteFile:
        """The whole file."""
        with self._lock:
            self._compressed += self._compressor.flush()
            return CompleteFile(bytes(self._compressed), self._rows)


class SnapshotFiles:
    """All files of one snapshot, with a listing of those written so far in the manifest's format."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._open: dict[str, RawFile] = {}
        self._lock = threading.Lock()
        self._written: dict[str, File] = {}

    def extend(self, surface: str, lines: Iterable[Any]) -> None:
        """Add lines to a surface's file, a batch at a time; what can't be read ends it, without its own batch.

        Even without lines the file is created: the surface was read, and is empty.
        """
        remaining = iter(lines)
        some = list(islice(remaining, LINES_AT_ONCE))
        with self._lock:
            file = self._open.setdefault(surface, RawFile())
        while some:
            file.extend(some)
            some = list(islice(remaining, LINES_AT_ONCE))

    def write(self, path: str, surface: str, broker: str | None, file: CompleteFile) -> None:
        """Write one complete file, replacing any earlier one at this path. Raises `StorageError`."""
        self._write(path, file.content)
        written = File(
            path=path,
            surface=surface,
            broker=broker,
            rows=file.rows,
            bytes=len(file.content),
            sha256=hashlib.sha256(file.content).hexdigest(),
        )
        with self._lock:
            self._written[path] = written

    def write_surfaces(self) -> None:
        """Write every surface's file. Raises `StorageError`."""
        for surface, file in sorted(self._open.items()):
            self.write(f"{surface}.jsonl.zst", surface, None, file.finish())

    def listing(self) -> tuple[File, ...]:
        """Every file written, sorted by path."""
        with self._lock:
            return tuple(file for _, file in sorted(self._written.items()))


def read_lines(content: bytes) -> Iterator[bytes]:
    """The lines of one file. Raises `zstandard.ZstdError` if it is truncated or damaged."""
    # The frame doesn't state its size, as it is written while lines arrive.
    frame = zstandard.ZstdDecompressor().decompressobj()
    data = frame.decompress(content)
    if not frame.eof:
        raise zstandard.ZstdError("the file is truncated")
    yield from data.splitlines()
