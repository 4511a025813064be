"""Transfers a snapshot to another machine as one tar file; importing it requires every byte to be as captured.

An archive holds regular files only: `manifest.json` first, then exactly the files the manifest lists, by their paths.
"""

from __future__ import annotations

import io
import re
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import zstandard

from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.model.some_of import some_of
from pulsar_advisor.storage.claim import claimed_as, remove_remainders
from pulsar_advisor.storage.files import parsed, read_file, sha256_hex, without_empty_folders, write_file
from pulsar_advisor.storage.root import MANIFEST, Root, snapshot_moment
from pulsar_advisor.storage.shapes import RAW_SNAPSHOT_SCHEMA, File, Manifest

LARGEST_MANIFEST_BYTES: Final = 256 << 20
LARGEST_FILE_BYTES: Final = 2 << 30
"""Compressed. A capture holds each file in memory while it makes it."""
LARGEST_CONTENT_BYTES: Final = 64 << 30
"""For one file, decompressed."""
LONGEST_LINE_BYTES: Final = 256 << 20
"""Readers hold a line in memory; the report on 100,000 bundles takes some 30 MB."""
LATER_THAN_ITS_BEGIN_S: Final = 60
"""A snapshot's id is the second in which it began, or a later one if that was taken."""
AHEAD_OF_US_S: Final = 300
"""How far the capturing machine's clock may be ahead of ours: a later snapshot would stay `latest` for a long time."""

_CHUNK_BYTES: Final = 1 << 20

_PATH = re.compile(r"[a-z_]+(/[0-9]+)?\.jsonl\.zst")


def export_snapshot(root: Root, snapshot: str, file: Path) -> None:
    """Write one snapshot (an id, or `latest`) to a tar file; the same snapshot always produces the same bytes.

    Raises `UsageError` if the snapshot doesn't exist or the file does, `StorageError` if a file of the snapshot
    doesn't match its manifest.
    """
    folder = root.folder("raw", root.resolve(snapshot))
    if file.exists():
        raise UsageError(f"{file} already exists: choose another name, or remove it")
    manifest = read_file(folder / MANIFEST, "capture")
    listed = _listed_files(_checked_manifest(manifest, str(folder)), str(folder))
    partial = file.with_name(f".{file.name}.partial")
    try:
        with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as archive:
            _add(archive, MANIFEST, manifest)
            for path, entry in sorted(listed.items()):
                content = read_file(folder / path, "capture")
                _check(content, entry, str(folder))
                _add(archive, path, content)
        partial.replace(file)
    except OSError as error:
        raise StorageError(f"can't write {file}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def import_snapshot(file: Path, root: Root) -> str:
    """Import an archive's snapshot under the root's cluster name and return its id; the manifest is unchanged.

    An existing snapshot with the same manifest is left as it is. Raises `StorageError` for an archive
    that holds anything but the snapshot's own, undamaged files, `UsageError` if another snapshot has that id. A
    refused archive leaves nothing behind.
    """
    try:
        with tarfile.open(file, "r:") as archive:
            return _take_in(archive, str(file), root)
    except FileNotFoundError as error:
        raise UsageError(f"there is no archive {file}") from error
    except (tarfile.TarError, EOFError) as error:
        raise StorageError(f"{file} is not a snapshot archive, or is damaged: {error}") from error
    except OSError as error:
        raise StorageError(f"can't read {file}: {error.strerror or error}") from error


def _take_in(archive: tarfile.TarFile, source: str, root: Root) -> str:
    member = archive.next()
    if member is None or member.name != MANIFEST or member.size > LARGEST_MANIFEST_BYTES:
        raise StorageError(f"{source}: its first file is not a {MANIFEST}: not a snapshot archive")
    manifest = _content(archive, member, source)
    document = _checked_manifest(manifest, source)
    if snapshot_moment(document.snapshot) > datetime.now(UTC) + timedelta(seconds=AHEAD_OF_US_S):
        raise StorageError(
            f"{source}: snapshot {document.snapshot} is dated in the future and would stay the latest: refused; "
            "check the clocks of this machine and of the one that captured it"
        )
    expected = _listed_files(document, source)
    present = root.folder("raw", document.snapshot) / MANIFEST
    if present.exists() and read_file(present, "capture") == manifest:
        return document.snapshot  # the same snapshot, byte for byte: the manifest holds the hash of every file
    remove_remainders(root, datetime.now(UTC))
    with without_empty_folders(present.parent.parent), claimed_as(root, document.snapshot) as lease:
        while (member := archive.next()) is not None:
            entry = expected.pop(member.name, None)
            if entry is None:
                raise StorageError(f"{source}: holds '{member.name}', which its manifest does not list: refused")
            if member.size != entry.bytes:
                raise StorageError(f"{source}: {entry.path} has {member.size} bytes, its manifest says {entry.bytes}")
            content = _content(archive, member, source)
            _check(content, entry, source)
            _check_lines(content, entry, source)
            write_file(lease.folder / entry.path, content)
        if expected:
            raise StorageError(f"{source}: {some_of(expected)} missing: incomplete archive")
        lease.require()
        write_file(lease.folder / MANIFEST, manifest)
    return document.snapshot


def _checked_manifest(manifest: bytes, source: str) -> Manifest:
    name = f"{source}: its {MANIFEST}"
    document = msgspec.convert(parsed(manifest, name, "capture", [RAW_SNAPSHOT_SCHEMA]), Manifest)
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


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, source: str) -> bytes:
    plain = member.isreg() and not member.issparse()
    stream = archive.extractfile(member) if plain else None
    if stream is None:
        raise StorageError(f"{source}: '{member.name}' is not a regular file: refused")
    return stream.read()


def _check(content: bytes, entry: File, source: str) -> None:
    if sha256_hex(content) != entry.sha256:
        raise StorageError(f"{source}: {entry.path} is not what was captured (its SHA-256 differs): refused")


def _check_lines(content: bytes, entry: File, source: str) -> None:
    """Refuse a file that would decompress beyond the limit, or that lacks the lines its manifest promises."""
    lines, line_bytes, total_bytes = 0, 0, 0
    try:
        with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as reader:
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


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = 0o644
    archive.addfile(member, io.BytesIO(content))
