"""`snapshots prune`: removes old snapshots and all results derived from them, except those that a plan refers to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final

import msgspec
from sqlalchemy import create_engine, select
from upath import UPath

from pulsar_advisor.execution.ledger.address import ledger_url
from pulsar_advisor.execution.ledger.ledger import default_ledger_url, ledger_exists, named_errors, open_ledger
from pulsar_advisor.execution.ledger.tables import PlanRecord
from pulsar_advisor.model.bounds import KEEP_COUNT, KEEP_DAYS
from pulsar_advisor.model.errors import AdvisorError, StorageError, UsageError
from pulsar_advisor.storage.claim import remove_folder
from pulsar_advisor.storage.files import read_file
from pulsar_advisor.storage.index import update_index
from pulsar_advisor.storage.lease import LEASE, is_held
from pulsar_advisor.storage.plans import PLANS
from pulsar_advisor.storage.root import MANIFEST, Root, is_snapshot_id, snapshot_id
from pulsar_advisor.storage.store_clock import age

SCHEMA: Final = "pulsar-advisor/prune-result/1"

_PREFIX: Final = "snapshot="


@dataclass(frozen=True)
class Retention:
    """What is kept: whatever either rule keeps, and always the newest snapshot."""

    keep_days: int | None = None
    keep_count: int | None = None

    def __post_init__(self) -> None:
        """Refuse a rule that keeps nothing, and the absence of rules."""
        if self.keep_days is None and self.keep_count is None:
            raise UsageError("give --keep-days N, --keep-count N, or both")
        KEEP_DAYS.check(self.keep_days)
        KEEP_COUNT.check(self.keep_count)

    def outdated(self, snapshots: Collection[str], now: datetime) -> list[str]:
        """The snapshots (ids) that no rule keeps, oldest first."""
        newest_first = sorted(snapshots, reverse=True)
        kept = set(newest_first[: self.keep_count or 1])
        if self.keep_days is not None:
            oldest_kept = snapshot_id(now - timedelta(days=self.keep_days))
            kept |= {snapshot for snapshot in snapshots if snapshot >= oldest_kept}
        return [snapshot for snapshot in sorted(snapshots) if snapshot not in kept]


@dataclass(frozen=True)
class Pruned:
    """What was removed (or would be), and what is kept although outdated."""

    removed: tuple[str, ...]
    referred_to: tuple[str, ...]
    """Outdated, but a plan refers to them."""
    at_work: tuple[str, ...]
    """Outdated, but a stage is working on them."""
    remainders: tuple[str, ...]
    """Ids for which an interrupted prune had left folders behind."""
    dry_run: bool
    unreadable: tuple[str, ...] = ()
    """Plans, by file or digest, that can't be read: the snapshots that they were made from are kept."""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"schema": SCHEMA, **asdict(self)}

    def lines(self) -> Iterator[str]:
        """For people."""
        verb = "would remove" if self.dry_run else "removed"
        yield from (f"{verb} {snapshot}" for snapshot in self.removed)
        yield from (f"{verb} what an interrupted prune left of {snapshot}" for snapshot in self.remainders)
        yield from (f"kept {snapshot}: a plan refers to it" for snapshot in self.referred_to)
        yield from (f"kept {snapshot}: a stage is working on it" for snapshot in self.at_work)
        yield from (f"can't be read: {plan}; the snapshot it was made from is kept" for plan in self.unreadable)
        if not (self.removed or self.remainders or self.referred_to or self.at_work):
            yield "nothing to prune"


def prune(root: Root, retention: Retention, address: str | None, now: datetime, *, dry_run: bool) -> Pruned:
    """Remove outdated snapshots: the raw manifest first, so that none ever exists in part, then every stage's folder.

    `address` is the ledger's (see `ledger_address`), by default SQLite beside a local root.
    Others may capture, or make and apply plans, at the same time: the manifest, the plans' references and any active
    stage are checked again before each snapshot is removed.
    Raises `UsageError` if the snapshots that plans refer to can't be determined (see `PlanReferences`), and
    `StorageError` if the ledger can't be read or a folder can't be removed.
    """
    stages = _stages(root)
    made = _made_of(
        root, stages
    )  # before the manifests are listed, so that a new snapshot is not mistaken for a remainder
    existing = root.snapshots()
    references = PlanReferences(root, address, has_plans=PLANS in stages)
    removed: list[str] = []
    remainders: list[str] = []
    referred_to: list[str] = []
    at_work: list[str] = []
    for snapshot in sorted({*made.difference(existing), *retention.outdated(existing, now)}):
        is_remainder = snapshot not in existing
        has_manifest = (root.folder("raw", snapshot) / MANIFEST).exists()
        if has_manifest == is_remainder:
            continue  # imported, or removed by another process, since the listing
        if snapshot in references.snapshots():
            referred_to += [] if is_remainder else [snapshot]
        elif _is_at_work(root, ("raw", *stages), snapshot):
            at_work += [] if is_remainder else [snapshot]
        else:
            (remainders if is_remainder else removed).append(snapshot)
            if not dry_run:
                _remove(root, stages, snapshot, has_manifest=has_manifest)
    if not dry_run:
        update_index(root)
    lists = (tuple(removed), tuple(referred_to), tuple(at_work), tuple(remainders))
    return Pruned(*lists, dry_run, tuple(references.unreadable))


def _remove(root: Root, stages: Collection[str], snapshot: str, *, has_manifest: bool) -> None:
    if has_manifest:
        _remove_manifest(root.folder("raw", snapshot) / MANIFEST)
        remove_folder(root.folder("raw", snapshot))
    for stage in stages:
        remove_folder(root.folder(stage, snapshot))


def _is_at_work(root: Root, stages: Iterable[str], snapshot: str) -> bool:
    """Whether a process holds a stage's folder."""
    leases = [lease for stage in stages if (lease := root.folder(stage, snapshot) / LEASE).exists()]
    return any(_is_held(lease) for lease in leases)


def _is_held(lease: UPath) -> bool:
    """Also if it can't be read."""
    try:
        return is_held(read_file(lease, "prune"), age(lease))
    except AdvisorError:
        return True


class PlanReferences:
    """The snapshots that a cluster's plans refer to; each query also finds plans made since the last one.

    Includes every plan in the ledger (proposed, approved or applied), plan files with steps to apply, since those may
    be recorded in another ledger, and the snapshots that a plan's strategies learnt from.
    Without a ledger there are none, unless the root `has_plans`: then their ledger is elsewhere, and `UsageError` is
    raised.
    """

    def __init__(self, root: Root, address: str | None, *, has_plans: bool) -> None:
        self._root = root
        self._url = address or default_ledger_url(root)
        self._read: dict[str, tuple[str, ...]] = {}
        """The references of each plan, by its digest or file; a plan never changes, so they are read once."""
        self.unreadable: list[str] = []
        """Plans, by digest or file, that can't be read: they refer to their own snapshot at least."""
        if not ledger_exists(self._url):
            if address is not None:
                raise UsageError(f"there is no ledger at {address}: nothing was removed")
            if has_plans:
                raise UsageError(
                    f"{root.path} holds plans but no ledger that refers to them: name it with --ledger URL"
                )
        else:
            with closing(open_ledger(self._url)):  # explains a wrong URL, and brings an older ledger up to date
                pass

    def snapshots(self) -> frozenset[str]:
        """Every snapshot that a plan currently refers to."""
        if ledger_exists(self._url):
            self._read_ledger()
            self._read_files()
        return frozenset(chain.from_iterable(self._read.values()))

    def _read_ledger(self) -> None:
        engine = create_engine(ledger_url(self._url))
        try:
            with named_errors(engine), engine.connect() as connection:
                mine = PlanRecord.cluster == self._root.cluster
                for digest in set(connection.scalars(select(PlanRecord.digest).where(mine))) - self._read.keys():
                    plan = select(PlanRecord.snapshot, PlanRecord.document).where(PlanRecord.digest == digest)
                    row = connection.execute(plan).one()
                    self._read[digest] = self._references(digest, row.snapshot, row.document, only_to_carry_out=False)
        finally:
            engine.dispose()

    def _read_files(self) -> None:
        for folder in _folders(self._root.path / PLANS / f"cluster={self._root.cluster}"):
            for file in folder.glob("*--*.json"):
                if str(file) not in self._read:
                    snapshot = folder.name.removeprefix(_PREFIX)
                    try:
                        document = read_file(file, "recommend")
                    except AdvisorError:
                        document = b""
                    self._read[str(file)] = self._references(str(file), snapshot, document, only_to_carry_out=True)

    def _references(
        self, plan: str, snapshot: str, document: str | bytes, *, only_to_carry_out: bool
    ) -> tuple[str, ...]:
        try:
            read = msgspec.json.decode(document, type=_Plan)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self.unreadable.append(plan)
            return (snapshot,)
        if only_to_carry_out and not any(step.executable for step in read.steps):
            return ()
        return (read.snapshot, *read.memory.snapshots)


class _Step(msgspec.Struct):
    executable: bool


class _Memory(msgspec.Struct):
    snapshots: list[str] = []


class _Plan(msgspec.Struct):
    """Of a plan of any version, what refers to snapshots."""

    snapshot: str
    memory: _Memory
    steps: list[_Step]


def _remove_manifest(path: UPath) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise StorageError(f"can't remove {path}: {error.strerror or error}") from error


def _stages(root: Root) -> list[str]:
    """Every folder with this cluster's snapshots, except raw: `validation`, `tables/bundles`, …"""
    found: list[str] = []
    for child in _folders(root.path):
        if child.name != "raw":
            inner = [child.name, *(f"{child.name}/{table.name}" for table in _folders(child))]
            found += (stage for stage in inner if (root.path / stage / f"cluster={root.cluster}").is_dir())
    return sorted(found)


def _made_of(root: Root, stages: Collection[str]) -> set[str]:
    """Ids of the snapshots for which some stage has results."""
    parents = (root.path / stage / f"cluster={root.cluster}" for stage in stages)
    names = (folder.name for parent in parents for folder in _folders(parent))
    ids = (name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))
    return set(filter(is_snapshot_id, ids))


def _folders(parent: UPath) -> list[UPath]:
    try:
        return [child for child in parent.iterdir() if child.is_dir()] if parent.is_dir() else []
    except OSError as error:
        raise StorageError(f"can't list {parent}: {error.strerror or error}") from error
