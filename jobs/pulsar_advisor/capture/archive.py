"""Carries a snapshot to another machine as one tar file, and takes it in there only if every byte is as captured.

An archive holds regular files only: `manifest.json` first, then exactly the files the manifest lists, by their paths.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any, Final

from pulsar_advisor.capture.capture import SCHEMA
from pulsar_advisor.capture.lease import remove_folder
from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.storage import MANIFEST, Root, read_file, sha256_hex, write_file

LARGEST_MANIFEST_BYTES: Final = 256 * 1024 * 1024

_PATH = re.compile(r"[a-z_]+(/[0-9]+)?\.jsonl\.zst")
_SNAPSHOT_ID = re.compile(r"\d{8}T\d{6}Z")


def export_snapshot(root: Root, snapshot: str, file: Path) -> None:
    """Write one snapshot (an id, or `latest`) to a tar file, the same bytes every time.

    Raises `UsageError` if the snapshot doesn't exist or the file does, `StorageError` if a file of the snapshot isn't as
    its manifest says.
    """
    folder = root.folder("raw", root.resolve(snapshot))
    manifest = read_file(folder / MANIFEST, "capture")
    files = _listed_files(json.loads(manifest), str(folder))
    partial = file.with_name(f".{file.name}.partial")
    if file.exists():
        raise UsageError(f"{file} exists already: choose another name, or remove it")
    try:
        with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as archive:
            _add(archive, MANIFEST, manifest)
            for path, entry in files.items():
                content = read_file(folder / path, "capture")
                _check(path, content, entry, str(folder))
                _add(archive, path, content)
        partial.replace(file)
    except OSError as error:
        raise StorageError(f"can't write {file}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def import_snapshot(file: Path, root: Root) -> str:
    """Take in an archive's snapshot under the root's cluster name and give back its id; the manifest stays as it was.

    Raises `StorageError` for an archive that holds anything but the snapshot's own, undamaged files, `UsageError` if
    that snapshot is there already. Nothing of a refused archive stays.
    """
    try:
        with tarfile.open(file, "r:") as archive:
            return _take_in(archive, str(file), root)
    except FileNotFoundError as error:
        raise UsageError(f"there is no archive {file}") from error
    except (tarfile.TarError, EOFError) as error:
        raise StorageError(f"{file} is not a snapshot archive, or damaged: {error}") from error
    except OSError as error:
        raise StorageError(f"can't read {file}: {error.strerror or error}") from error


def _take_in(archive: tarfile.TarFile, source: str, root: Root) -> str:
    member = archive.next()
    if member is None or member.name != MANIFEST or member.size > LARGEST_MANIFEST_BYTES:
        raise StorageError(f"{source}: its first file is not a {MANIFEST}: not a snapshot archive")
    manifest = _content(archive, member, source)
    document = _parsed(manifest, source)
    expected = _listed_files(document, source)
    snapshot = str(document["snapshot"])
    folder = root.folder("raw", snapshot)
    if folder.exists():
        raise UsageError(f"snapshot {snapshot} of cluster '{root.cluster}' is there already, under {root.path}")
    try:
        while (member := archive.next()) is not None:
            entry = expected.pop(member.name, None)
            if entry is None:
                raise StorageError(f"{source}: holds '{member.name}', which its manifest does not list: refused")
            if member.size != entry["bytes"]:
                raise StorageError(
                    f"{source}: {member.name} has {member.size} bytes, its manifest says {entry['bytes']}"
                )
            content = _content(archive, member, source)
            _check(member.name, content, entry, source)
            write_file(folder / member.name, content)
        if expected:
            raise StorageError(f"{source}: lacks {', '.join(sorted(expected)[:3])}: incomplete archive")
        write_file(folder / MANIFEST, manifest)
    except BaseException:
        remove_folder(folder)
        raise
    return snapshot


def _parsed(manifest: bytes, source: str) -> dict[str, Any]:
    try:
        document = json.loads(manifest)
    except ValueError as error:
        raise StorageError(f"{source}: its {MANIFEST} is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise StorageError(f"{source}: its manifest has schema {found!r}; this release reads {SCHEMA}")
    if not _SNAPSHOT_ID.fullmatch(str(document.get("snapshot"))):
        raise StorageError(f"{source}: its manifest names no snapshot")
    return document


def _listed_files(manifest: dict[str, Any], source: str) -> dict[str, dict[str, Any]]:
    files = {str(entry["path"]): entry for entry in manifest["files"]}
    for path in files:
        if not _PATH.fullmatch(path):
            raise StorageError(f"{source}: its manifest lists '{path}', which is no file of a snapshot: refused")
    return dict(sorted(files.items()))


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, source: str) -> bytes:
    stream = archive.extractfile(member) if member.isreg() else None
    if stream is None:
        raise StorageError(f"{source}: '{member.name}' is not a regular file: refused")
    content = stream.read()
    if len(content) != member.size:
        raise StorageError(f"{source}: ends within {member.name}: damaged archive")
    return content


def _check(path: str, content: bytes, entry: dict[str, Any], source: str) -> None:
    if sha256_hex(content) != entry["sha256"]:
        raise StorageError(f"{source}: {path} is not what was captured (SHA-256 differs from the manifest): refused")


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = 0o644
    archive.addfile(member, io.BytesIO(content))
