"""The root on disk or in an object store: where each stage's files are, and the rule that a result file comes last.

A snapshot exists if and only if its manifest does; a stage's result exists if and only if its result file does.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pulsar_advisor.model.cluster.snapshot_id import day_of, is_snapshot_id
from pulsar_advisor.model.errors import UsageError, attempting
from pulsar_advisor.model.text.folder_address import require_absolute, require_no_password, require_text
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import nearest

if TYPE_CHECKING:
    from upath import UPath

LATEST: Final = "latest"
MANIFEST: Final = "manifest.json"
RESULT: Final = "result.json"
PLANS: Final = "plans"

_RESULT_FILE: Final = {
    "capture": ("raw", MANIFEST),
    "normalize": ("tables/result", RESULT),
    "validate": ("validation", RESULT),
    "recommend": (PLANS, "recommendation.json"),
}
"""Stage -> folder and name of the file that it writes last. The manifest holds the hashes of all raw files."""

_ASKED_AT_ONCE: Final = 16
"""Checks files in parallel: on an object store each check is a round trip."""

_PLAIN: Final = "/ ~:@!$&'()*+,;="
"""What a URL may show of a path as it is; `?` would begin its options, and `%` a character's number."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Root:
    """One root (a path or an object-store URL) and the folders of one cluster in it."""

    url: str
    cluster: str

    def __post_init__(self) -> None:
        """Refuse a name unfit for a path, and a URL that is empty, relative, has a password or can't be opened."""
        if not self.url:
            raise UsageError("the root's name is empty: give a path or an object-store URL")
        require_no_password(self.url)
        require_text(self.url)
        require_absolute(self.url)
        if not _CLUSTER.fullmatch(self.cluster):
            raise UsageError(
                f"cluster name '{self.cluster}' can't be part of a path: use letters, digits, dot, dash, underscore"
            )
        try:
            if self._is_url:
                self.path.fs  # noqa: B018
        except (ImportError, ValueError) as error:
            raise UsageError(
                f"root '{self.url}' can't be opened: {error}; it is a path, or a URL whose package is installed "
                "(`pip install s3fs` for s3://)"
            ) from error

    @property
    def _is_url(self) -> bool:
        """Whether it may be a URL: anything that begins like a scheme."""
        return bool(_SCHEME.match(self.url))

    @property
    def location(self) -> Path | UPath:
        """As `path`, but a plain path if the root is one: listing it loads no library for object stores."""
        return self.path if self._is_url else Path(self.url).absolute()

    @cached_property
    def path(self) -> UPath:
        """The root itself; a local one is made an absolute path, so that Spark and Python use the same folder."""
        from upath import UPath

        from pulsar_advisor.storage.files import is_local

        path = UPath(self.url)
        return UPath(Path(path.path).absolute()) if is_local(path) else path

    @property
    def own_ledger_url(self) -> str | None:
        """URL of the SQLite ledger in a local root; None for an object store, which can't hold one."""
        from pulsar_advisor.storage.files import is_local

        path = self.path
        return f"sqlite:///{quote(path.path, safe=_PLAIN)}/ledger.sqlite" if is_local(path) else None

    @property
    def ledger_url(self) -> str:
        """The same. Raises `UsageError` for an object store."""
        if (url := self.own_ledger_url) is None:
            raise UsageError(f"root {self.path} is an object store, which can't hold a ledger: {reader().name_ledger}")
        return url

    def snapshot(self, id: str) -> Snapshot:
        """The snapshot with this id, whether it exists or not."""
        return Snapshot(self, id)

    def day(self, date: str) -> Day:
        """This day (`YYYYMMDD`, UTC), whether it was folded or not."""
        return Day(self, date)

    def of_cluster(self, stage: str) -> UPath:
        """The folder of a stage's or table's folders, one for each snapshot or day."""
        return self.path / stage / f"cluster={self.cluster}"

    def clusters(self) -> list[str]:
        """Names of the clusters that have snapshots under this root, sorted."""
        return _clusters_in(self.location / "raw")

    def known_clusters(self) -> list[str]:
        """Names of the clusters that have snapshots or folded days under this root, sorted."""
        return sorted({*self.clusters(), *_clusters_in(self.location / "history" / "result")})

    def require_there(self) -> None:
        """Raise `UsageError` if nothing was written there yet, or what holds it isn't mounted."""
        if not self.location.exists():
            raise UsageError(f"there is no root {self.location}: run `capture`, or name another with --root")

    def require_known(self) -> None:
        """Raise `UsageError` if the root has files of other clusters, but not of this one."""
        known = self.known_clusters()
        if known and self.cluster not in known:
            raise UsageError(
                f"there is no cluster '{self.cluster}' under {self.location}{nearest(self.cluster, known)}; there are: "
                f"{', '.join(known)}"
            )

    def snapshots(self) -> list[str]:
        """Ids of the snapshots that exist, oldest first."""
        ids = self.folders()
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            there = pool.map(lambda id: self.snapshot(id).is_written("capture"), ids)
            return [id for id, exists in zip(ids, there, strict=True) if exists]

    def newest_first(self, before: str | None = None, known: Container[str] = ()) -> Iterator[Snapshot]:
        """The existing snapshots, optionally only those before one; each is checked lazily, unless already known."""
        found = (self.snapshot(id) for id in reversed(self.folders()) if before is None or id < before)
        return (snapshot for snapshot in found if snapshot.id in known or snapshot.is_written("capture"))

    def folders(self) -> list[str]:
        """Ids that have a folder, sorted, from a single listing. Refuses a root that is a file."""
        with attempting(f"list {self.location}"):
            ids = snapshots_in(self.location / "raw" / f"cluster={self.cluster}")
            if not ids and self.location.is_file():
                raise UsageError(f"root {self.location} is a file: name a folder")
        return ids

    def resolve(self, id: str) -> Snapshot:
        """An existing snapshot; `latest` is the newest one. Raises `UsageError` if there is none."""
        if id == LATEST:
            newest = next(self.newest_first(), None)
            if newest is None:
                self.require_known()
                raise UsageError(
                    f"there is no snapshot of cluster '{self.cluster}' under {self.location}: run `capture`"
                )
            return newest
        if not is_snapshot_id(id):
            raise UsageError(f"'{id}' is not a snapshot id; expected the form 20261121T083000Z, or 'latest'")
        snapshot = self.snapshot(id)
        if not snapshot.is_written("capture"):
            self.require_known()
            raise UsageError(
                f"there is no snapshot {id} of cluster '{self.cluster}' under {self.location}: {reader().see_snapshots}"
            )
        return snapshot


@dataclass(frozen=True)
class Snapshot:
    """A snapshot by its cluster's root and its id, whether it exists or not: where each stage's files about it are."""

    root: Root
    id: str

    def __str__(self) -> str:
        """Its id."""
        return self.id

    @property
    def day(self) -> Day:
        """The day in which it was captured."""
        return self.root.day(day_of(self.id))

    def folder(self, stage: str) -> UPath:
        """`<stage>/cluster=<c>/snapshot=<id>`; `stage` may have a sub-folder, as `tables/bundles`."""
        return self.root.of_cluster(stage) / f"snapshot={self.id}"

    def result_file(self, stage: str) -> UPath:
        """Where a stage (`capture`, `normalize`, `validate` or `recommend`) writes its result."""
        return self.root.path / self._result_file(stage)

    def is_written(self, stage: str) -> bool:
        """Whether a stage's result is there; that of `capture` says whether the snapshot exists."""
        return bool((self.root.location / self._result_file(stage)).exists())

    def _result_file(self, stage: str) -> str:
        folder, name = _RESULT_FILE[stage]
        return f"{folder}/cluster={self.root.cluster}/snapshot={self.id}/{name}"


@dataclass(frozen=True)
class Day:
    """A day by its cluster's root and its date (`YYYYMMDD`, UTC), folded or not: where the files of its tables are."""

    root: Root
    date: str

    def __str__(self) -> str:
        """Its date."""
        return self.date

    def folder(self, table: str) -> UPath:
        """`history/<table>/cluster=<c>/day=<date>`."""
        return self.root.of_cluster(f"history/{table}") / f"day={self.date}"

    @property
    def result_file(self) -> UPath:
        """Where folding it writes its result."""
        return self.folder("result") / RESULT


def snapshots_in(parent: Path | UPath) -> list[str]:
    """Ids of the snapshots with a folder in a stage's, sorted: one listing, as on an object store each look costs."""
    ids = (name.removeprefix("snapshot=") for name in names_in(parent) if name.startswith("snapshot="))
    return sorted(filter(is_snapshot_id, ids))


def _clusters_in(parent: Path | UPath) -> list[str]:
    """Names of the clusters with a folder in that of a stage or table, sorted."""
    clusters = (name.removeprefix("cluster=") for name in names_in(parent) if name.startswith("cluster="))
    return sorted(filter(_CLUSTER.fullmatch, clusters))


def names_in(folder: Path | UPath) -> list[str]:
    """The names of a folder's entries; none if there is no such folder. Raises `StorageError`."""
    with attempting(f"list {folder}"):
        return [child.name for child in folder.iterdir()] if folder.is_dir() else []
