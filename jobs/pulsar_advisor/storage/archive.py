"""Transfers a snapshot to another machine as one tar file; importing it requires every byte to be as captured.

An archive holds regular files only: `manifest.json` first, then exactly the files the manifest lists, by their paths.
Each has a plain 512-byte header without extensions, so every number in an archive is checked before it is used.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

import zstandard
from upath import UPath

from pulsar_advisor.documents.manifest import File, Manifest
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.model.errors import StorageError, UsageError, attempting
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.storage.claim import CLOCK_TOLERANCE, claimed_as, remove_folder, remove_remainders
from pulsar_advisor.storage.files import (
    LARGEST_FILE_BYTES,
    open_file,
    read_file,
    sha256_hex,
    sha256_of,
    sha256_of_file,
    without_empty_folders,
    write_chunks,
    write_output,
)
from pulsar_advisor.storage.index import update_index
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot

LARGEST_MANIFEST_BYTES: Final = 64 << 20
MOST_VALUES: Final = 1_000_000
"""Limit for a manifest, counted by its commas; with a thousand brokers it has about sixty thousand."""
LARGEST_CONTENT_BYTES: Final = 64 << 30
"""For one file, decompressed."""
LONGEST_LINE_BYTES: Final = 256 << 20
"""Readers hold a line in memory; the report on 100,000 bundles takes some 30 MB."""
LATER_THAN_ITS_BEGIN_S: Final = 60
"""A snapshot's id is the second in which it began, or a later one if that id was taken."""

_CHUNK_BYTES: Final = 1 << 20

_PATH = re.compile(r"[a-z_]+(/[0-9]+)?\.jsonl\.zst")


def export_snapshot(snapshot: Snapshot, file: Path) -> None:
    """Write one snapshot to a tar file; the same snapshot always produces the same bytes.

    Raises `UsageError` if the snapshot doesn't exist or the file does, `StorageError` if a file of the snapshot
    doesn't match its manifest.
    """
    folder = snapshot.folder("raw")
    if file.exists():
        raise UsageError(f"{file} already exists: choose another name, or remove it")
    manifest = read_file(folder / MANIFEST, "capture")
    listed = _listed_files(_checked_manifest(manifest, str(folder)), str(folder))
    write_output(UPath(file), _archived(_files(folder, manifest, listed)))


def import_snapshot(file: Path, root: Root) -> Snapshot:
    """Import an archive's snapshot under the root's cluster name; the manifest is unchanged.

    Missing or damaged files of an existing snapshot with the same manifest are restored. Raises `StorageError` for an
    archive that holds anything but the snapshot's own, undamaged files, `UsageError` if another snapshot has that id. A
    refused archive leaves nothing behind.
    """
    with attempting(f"read {file}"):
        try:
            opened = open_file(UPath(file))
        except FileNotFoundError as error:
            raise UsageError(f"there is no archive {file}") from error
    try:
        with opened as archive:
            snapshot = _take_in(archive, str(file), root)
    except tarfile.HeaderError as error:
        raise StorageError(f"{file} is not a snapshot archive, or is damaged: {error}") from error
    update_index(root, snapshot.id)
    return snapshot


@dataclass
class _Content:
    """The unread rest of a file in an archive, never in memory as a whole."""

    archive: BinaryIO
    offset: int
    left: int

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; empty at the end."""
        self.archive.seek(self.offset)
        piece = self.archive.read(min(size, self.left))
        self.offset += len(piece)
        self.left -= len(piece)
        return piece

    def pieces(self) -> Iterator[bytes]:
        """The rest in pieces of a megabyte."""
        return iter(lambda: self.read(_CHUNK_BYTES), b"")


def _members(archive: BinaryIO, source: str) -> Iterator[tuple[str, int, int]]:
    """Name, offset and size of each file up to the end. Raises `StorageError` unless it is regular and all there."""
    length, offset = archive.seek(0, io.SEEK_END), 0
    while offset < length:
        archive.seek(offset)
        header = archive.read(tarfile.BLOCKSIZE)
        if header == bytes(tarfile.BLOCKSIZE):
            return
        member = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise StorageError(f"{source}: '{member.name}' is not a regular file: refused")
        offset += tarfile.BLOCKSIZE
        if not 0 <= member.size <= length - offset:
            raise StorageError(
                f"{source}: '{member.name}' should have {_digits(member.size)} bytes, but {length - offset} follow: "
                "damaged or incomplete"
            )
        yield member.name, offset, member.size
        offset += -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _digits(number: int) -> str:
    return f"{number}" if abs(number) < 10**18 else f"{number:.0e}"


def _take_in(archive: BinaryIO, source: str, root: Root) -> Snapshot:
    members = _members(archive, source)
    name, offset, size = next(members, ("", 0, 0))
    if name != MANIFEST:
        raise StorageError(f"{source}: its first file is not a {MANIFEST}: not a snapshot archive")
    if size > LARGEST_MANIFEST_BYTES:
        raise StorageError(f"{source}: its {MANIFEST} has {size} bytes, more than any capture's: refused")
    manifest = _Content(archive, offset, size).read(size)
    document = _checked_manifest(manifest, source)
    if snapshot_moment(document.snapshot) > datetime.now(UTC) + CLOCK_TOLERANCE:
        raise StorageError(
            f"{source}: snapshot {document.snapshot} is dated in the future and would stay the latest: refused; "
            "check the clocks of this machine and of the one that captured it"
        )
    expected = _listed_files(document, source)
    snapshot = root.snapshot(document.snapshot)
    folder = snapshot.folder("raw")
    if snapshot.is_written("capture") and read_file(folder / MANIFEST, "capture") == manifest:
        _take_files(archive, members, expected, source, folder)  # the same snapshot, byte for byte
        if not snapshot.is_written("capture"):
            remove_folder(folder)  # what was just put back would look like a capture at work
            raise StorageError(f"snapshot {snapshot} was being removed meanwhile: import {source} again")
        return snapshot
    remove_remainders(root)
    with without_empty_folders(folder.parent), claimed_as(snapshot) as lease:
        _take_files(archive, members, expected, source, lease.folder)
        lease.write(lease.folder / MANIFEST, manifest)
    return snapshot


def _take_files(
    archive: BinaryIO, members: Iterator[tuple[str, int, int]], expected: dict[str, File], source: str, folder: UPath
) -> None:
    """Write each file that the folder lacks, or whose content differs from the manifest."""
    for name, offset, size in members:
        entry = expected.pop(name, None)
        if entry is None:
            raise StorageError(f"{source}: holds '{name}', which its manifest does not list: refused")
        if size != entry.bytes:
            raise StorageError(f"{source}: {entry.path} has {size} bytes, its manifest says {entry.bytes}")
        _check(sha256_of(_Content(archive, offset, size).pieces()), entry, source)
        _check_lines(_Content(archive, offset, size), entry, source)
        if not _is_there(folder / entry.path, entry):
            write_chunks(folder / entry.path, _Content(archive, offset, size).pieces())
    if expected:
        raise StorageError(f"{source}: {some_of(expected)} missing: incomplete archive")


def _is_there(path: UPath, entry: File) -> bool:
    try:
        return sha256_of_file(path) == entry.sha256
    except OSError:
        return False


def _checked_manifest(manifest: bytes, source: str) -> Manifest:
    if manifest.count(b",") > MOST_VALUES:
        raise StorageError(f"{source}: its {MANIFEST} holds more values than any capture's: refused")
    document = Manifest.parsed(manifest, f"{source}: its {MANIFEST}")
    try:
        late_s = snapshot_moment(document.snapshot).timestamp() - document.started_at_ms // 1000
    except ValueError as error:
        raise StorageError(f"{source}: '{document.snapshot}' in its manifest is not a snapshot id: refused") from error
    if not 0 <= late_s <= LATER_THAN_ITS_BEGIN_S:
        raise StorageError(
            f"{source}: its manifest names snapshot {document.snapshot}, but says that it began at "
            f"{document.started_at_ms} ms: refused"
        )
    return document


def _listed_files(manifest: Manifest, source: str) -> dict[str, File]:
    listed: dict[str, File] = {}
    for entry in manifest.files:
        if not _PATH.fullmatch(entry.path):
            raise StorageError(
                f"{source}: its manifest lists '{entry.path}', which is not a file of a snapshot: refused"
            )
        if entry.path in listed:
            raise StorageError(f"{source}: its manifest lists {entry.path} twice: refused")
        if entry.bytes > LARGEST_FILE_BYTES:
            raise StorageError(
                f"{source}: {entry.path} has {entry.bytes} bytes, more than any file of a capture: refused"
            )
        listed[entry.path] = entry
    return listed


def _check(digest: str, entry: File, source: str) -> None:
    if digest != entry.sha256:
        raise StorageError(f"{source}: {entry.path} is not what was captured (its SHA-256 differs): refused")


def _check_lines(content: _Content, entry: File, source: str) -> None:
    """Refuse a file that would decompress beyond the limit, or that lacks the lines its manifest promises."""
    lines, line_bytes, total_bytes = 0, 0, 0
    try:
        with zstandard.ZstdDecompressor().stream_reader(cast("IO[bytes]", content), read_across_frames=True) as reader:
            while chunk := reader.read(_CHUNK_BYTES):
                lines += chunk.count(b"\n")
                last_end = chunk.rfind(b"\n")
                line_bytes = line_bytes + len(chunk) if last_end < 0 else len(chunk) - last_end - 1
                total_bytes += len(chunk)
                if line_bytes > LONGEST_LINE_BYTES or total_bytes > LARGEST_CONTENT_BYTES:
                    raise StorageError(f"{source}: {entry.path} expands beyond the size of any capture: refused")
    except zstandard.ZstdError as error:
        raise StorageError(f"{source}: {entry.path} is not compressed as a snapshot's files are: {error}") from error
    if lines != entry.rows or line_bytes:
        raise StorageError(
            f"{source}: {entry.path} does not have the {entry.rows} lines stated in its manifest: refused"
        )


def _files(folder: UPath, manifest: bytes, listed: dict[str, File]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file of a snapshot, undamaged, as an archive holds them."""
    yield MANIFEST, manifest
    for path, entry in sorted(listed.items()):
        if not (folder / path).exists():
            raise UsageError(f"{folder} has no {path} any more: a snapshot without raw files can't be exported")
        content = read_file(folder / path, "capture")
        _check(sha256_hex(content), entry, str(folder))
        yield path, content


def _archived(files: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """The pieces of an archive of these files."""
    piece = io.BytesIO()
    with tarfile.open(fileobj=piece, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(content))
            yield piece.getvalue()
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue()
