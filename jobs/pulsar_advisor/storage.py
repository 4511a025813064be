"""The root on disk or in an object store: where each stage's files lie, and the rule that a result file comes last.

A snapshot exists if and only if its manifest does; a stage's result exists if and only if its result file does.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from upath import UPath

from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.shapes import SHAPES

LATEST: Final = "latest"
MANIFEST: Final = "manifest.json"
RESULT: Final = "result.json"

_ASKED_AT_ONCE: Final = 16
"""Looks at files side by side: in an object store each is a round trip."""

_SNAPSHOT_ID = re.compile(r"\d{8}T\d{6}Z")
_CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def snapshot_id(moment: datetime) -> str:
    """`20261121T083000Z` for an aware datetime."""
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def snapshot_moment(snapshot: str) -> datetime:
    """When a snapshot began, by its id; aware."""
    return datetime.strptime(snapshot, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def sha256_hex(content: bytes) -> str:
    """SHA-256 of some bytes, lower-case hexadecimal."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Root:
    """One root (a path or an object-store URL) and the folders of one cluster in it."""

    url: str
    cluster: str

    def __post_init__(self) -> None:
        """Refuse a cluster name that can't be part of a path, and a URL that nothing installed can open."""
        if not _CLUSTER.fullmatch(self.cluster):
            raise UsageError(
                f"cluster name '{self.cluster}' can't be part of a path: use letters, digits, dot, dash, underscore"
            )
        try:
            self.path.fs  # noqa: B018
        except (ImportError, ValueError) as error:
            raise UsageError(
                f"root '{self.url}' can't be opened: {error}; it is a path, or a URL whose package is installed "
                "(`pip install s3fs` for s3://)"
            ) from error

    @property
    def path(self) -> UPath:
        """The root itself; a local path is made absolute, so that Spark and Python mean the same folder."""
        path = UPath(self.url)
        return UPath(Path(self.url).absolute()) if path.protocol == "" else path

    def folder(self, stage: str, snapshot: str) -> UPath:
        """`<stage>/cluster=<c>/snapshot=<id>`; `stage` may have a sub-folder, as `tables/bundles`."""
        return self.path / stage / f"cluster={self.cluster}" / f"snapshot={snapshot}"

    def snapshots(self) -> list[str]:
        """Ids of the snapshots that exist, oldest first."""
        ids = self._folders()
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            return [snapshot for snapshot, exists in zip(ids, pool.map(self._exists, ids), strict=True) if exists]

    def newest_first(self, before: str | None = None) -> Iterator[str]:
        """Ids of the snapshots that exist, of those before one; each is looked at only when it is asked for."""
        ids = (snapshot for snapshot in reversed(self._folders()) if before is None or snapshot < before)
        return filter(self._exists, ids)

    def _folders(self) -> list[str]:
        """Ids of which there is a folder, sorted; a single listing, whatever their number. Refuses a file as root."""
        parent = self.path / "raw" / f"cluster={self.cluster}"
        try:
            names = [child.name for child in parent.iterdir()] if parent.is_dir() else []
            if not names and self.path.is_file():
                raise UsageError(f"root {self.path} is a file: name a folder")
        except OSError as error:
            raise StorageError(f"can't list {parent}: {error.strerror or error}") from error
        ids = (name.removeprefix("snapshot=") for name in names if name.startswith("snapshot="))
        return sorted(filter(_SNAPSHOT_ID.fullmatch, ids))

    def _exists(self, snapshot: str) -> bool:
        return bool((self.folder("raw", snapshot) / MANIFEST).exists())

    def resolve(self, snapshot: str) -> str:
        """The id of an existing snapshot; `latest` is the newest one. Raises `UsageError` if there is none."""
        if snapshot == LATEST:
            newest = next(self.newest_first(), None)
            if newest is None:
                raise UsageError(f"there is no snapshot of cluster '{self.cluster}' under {self.path}: run `capture`")
            return newest
        if not _SNAPSHOT_ID.fullmatch(snapshot):
            raise UsageError(f"'{snapshot}' is not a snapshot id; expected the form 20261121T083000Z, or 'latest'")
        if not self._exists(snapshot):
            raise UsageError(
                f"there is no snapshot {snapshot} of cluster '{self.cluster}' under {self.path}: "
                "see `pulsar-advisor snapshots list`"
            )
        return snapshot


@contextmanager
def without_empty_folders(folder: UPath) -> Iterator[None]:
    """Whichever of this folder and those above it is made meanwhile goes again if nothing is in it in the end."""
    local = folder.protocol in ("", "file")
    new = [one for one in (folder, *folder.parents) if not one.exists()] if local else []
    try:
        yield
    finally:
        for one in new:
            with suppress(OSError):
                one.rmdir()


def write_file(path: UPath, content: bytes) -> None:
    """Write a whole file, visible only when it is complete. Raises `StorageError` if the place can't be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.protocol in ("", "file"):
            # Of its own, as another process may be writing the same file: whoever ends last has written it whole.
            temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
            temporary.write_bytes(content)
            temporary.replace(path)
        else:
            path.write_bytes(content)  # an object store shows an object only when it is whole
    except OSError as error:
        raise StorageError(f"can't write {path}: {error.strerror or error}") from error


def write_json(path: UPath, document: Any) -> bytes:
    """Write a JSON document, sorted and indented for people, and give back the bytes written."""
    content = (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()
    write_file(path, content)
    return content


def read_file(path: UPath, made_by: str) -> bytes:
    """A whole file. Raises `UsageError` naming the stage that makes it when it isn't there."""
    try:
        return bytes(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist: run `{made_by}` first") from error
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror or error}") from error


def read_json(path: UPath, made_by: str, schemas: Iterable[str]) -> dict[str, Any]:
    """A JSON document of one of the given schemas. Raises `UsageError` if absent, `StorageError` as `parsed` does."""
    return parsed(read_file(path, made_by), str(path), made_by, schemas)


def parsed(content: bytes, name: str, made_by: str, schemas: Iterable[str]) -> dict[str, Any]:
    """A document out of its bytes. Raises `StorageError` if it has another schema or lacks what its schema promises."""
    try:
        document = json.loads(content)
    except ValueError as error:
        raise StorageError(f"{name} is not JSON: {error}") from error
    known = tuple(schemas)
    found = document.get("schema") if isinstance(document, dict) else None
    if found not in known:
        raise StorageError(f"{name} has schema {found!r}; this release reads {', '.join(known)}")
    try:
        msgspec.convert(document, SHAPES.get(found, dict))
    except msgspec.ValidationError as error:
        raise StorageError(
            f"{name} is not as `{made_by}` writes it ({error}): put it back as it was, or remove it and run "
            f"`{made_by}` again"
        ) from error
    return dict(document)
