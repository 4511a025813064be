"""`snapshots prune`: removes old snapshots and all that later stages made of them, but none that a plan refers to."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import create_engine, select
from sqlalchemy.exc import SQLAlchemyError
from upath import UPath

from pulsar_advisor.execution.ledger import default_ledger_url, ledger_exists, open_ledger
from pulsar_advisor.execution.ledger_tables import PlanRecord
from pulsar_advisor.model.bounds import KEEP_COUNT, KEEP_DAYS
from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.model.plan import PLAN_SCHEMA
from pulsar_advisor.storage.claim import remove_folder
from pulsar_advisor.storage.files import read_json
from pulsar_advisor.storage.plans import PLANS
from pulsar_advisor.storage.root import MANIFEST, Root, snapshot_id

SCHEMA: Final = "pulsar-advisor/prune-result/1"

_PREFIX: Final = "snapshot="


@dataclass(frozen=True)
class Retention:
    """What stays: whatever either rule keeps, and always the newest snapshot."""

    keep_days: int | None = None
    keep_count: int | None = None

    def __post_init__(self) -> None:
        """Refuse a rule that keeps nothing, and no rule at all."""
        if self.keep_days is None and self.keep_count is None:
            raise UsageError("say what to keep: --keep-days N, --keep-count N, or both")
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
    """What was removed (or would be), and what stays although it is outdated."""

    removed: tuple[str, ...]
    referred_to: tuple[str, ...]
    """Outdated, but a plan refers to them."""
    remainders: tuple[str, ...]
    """Ids of which an interrupted prune had left some folders."""
    dry_run: bool

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"schema": SCHEMA, **asdict(self)}

    def lines(self) -> Iterator[str]:
        """For people."""
        verb = "would remove" if self.dry_run else "removed"
        yield from (f"{verb} {snapshot}" for snapshot in self.removed)
        yield from (f"{verb} what an interrupted prune left of {snapshot}" for snapshot in self.remainders)
        yield from (f"kept {snapshot}: a plan refers to it" for snapshot in self.referred_to)
        if not (self.removed or self.remainders or self.referred_to):
            yield "nothing is outdated"


def prune(root: Root, retention: Retention, ledger_url: str | None, now: datetime, *, dry_run: bool) -> Pruned:
    """Remove outdated snapshots: the raw manifest first, so that one is never there in part, then every stage's folder.

    Raises `UsageError` where it can't be known which snapshots plans refer to (see `snapshots_of_plans`), and
    `StorageError` if the ledger can't be read or a folder can't be removed.
    """
    stages = _stages(root)
    referred_to = snapshots_of_plans(root, ledger_url, has_plans=PLANS in stages)
    existing = root.snapshots()
    outdated = retention.outdated(existing, now)
    removed = [snapshot for snapshot in outdated if snapshot not in referred_to]
    remainders = sorted(_made_of(root, stages) - set(existing) - referred_to)
    if not dry_run:
        for snapshot in removed:
            _remove_manifest(root.folder("raw", snapshot) / MANIFEST)
            remove_folder(root.folder("raw", snapshot))
        for snapshot in (*remainders, *removed):
            for stage in stages:
                remove_folder(root.folder(stage, snapshot))
    return Pruned(
        tuple(removed),
        tuple(snapshot for snapshot in outdated if snapshot in referred_to),
        tuple(remainders),
        dry_run,
    )


def snapshots_of_plans(root: Root, ledger_url: str | None, *, has_plans: bool) -> frozenset[str]:
    """The snapshots of every plan of this cluster that the ledger knows (proposed, approved or carried out).

    Also those of plan files that have something to carry out, since they may be recorded in another ledger, and those
    a plan's strategies learnt from. Without a ledger there are none, unless the root `has_plans`: then their ledger is
    elsewhere, and `UsageError` is raised.
    """
    url = ledger_url or default_ledger_url(root)
    if not ledger_exists(url):
        if ledger_url is not None:
            raise UsageError(f"there is no ledger at {ledger_url}: nothing was removed")
        if has_plans:
            raise UsageError(
                f"{root.path} holds plans but no ledger that tells who refers to them: name it, --ledger URL"
            )
        return frozenset()
    return _snapshots_in_ledger(url, root.cluster).union(*map(_snapshots_of, _plans_to_carry_out(root)))


def _snapshots_in_ledger(url: str, cluster: str) -> frozenset[str]:
    with closing(open_ledger(url)):  # explains a wrong URL, and brings an older ledger up to date
        pass
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            plans = connection.scalars(select(PlanRecord.document).where(PlanRecord.cluster == cluster))
            return frozenset(snapshot for plan in plans for snapshot in _snapshots_of(json.loads(plan)))
    except SQLAlchemyError as error:
        raise StorageError(f"ledger {engine.url.render_as_string()} can't be read: {error}") from error
    finally:
        engine.dispose()


def _snapshots_of(plan: Mapping[str, Any]) -> list[str]:
    return [plan["snapshot"], *plan["memory"].get("snapshots", ())]


def _plans_to_carry_out(root: Root) -> Iterator[dict[str, Any]]:
    for folder in _folders(root.path / PLANS / f"cluster={root.cluster}"):
        for file in folder.glob("*--*.json"):
            plan = read_json(file, "recommend", [PLAN_SCHEMA])
            if any(step["executable"] for step in plan["steps"]):
                yield plan


def _remove_manifest(path: UPath) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise StorageError(f"can't remove {path}: {error.strerror or error}") from error


def _stages(root: Root) -> list[str]:
    """Every stage's folder that has this cluster's snapshots, but raw: `validation`, `tables/bundles`, …"""
    found: list[str] = []
    for child in _folders(root.path):
        if child.name != "raw":
            inner = [child.name, *(f"{child.name}/{table.name}" for table in _folders(child))]
            found += (stage for stage in inner if (root.path / stage / f"cluster={root.cluster}").is_dir())
    return sorted(found)


def _made_of(root: Root, stages: Collection[str]) -> set[str]:
    """Ids of the snapshots of which some stage has made something."""
    parents = (root.path / stage / f"cluster={root.cluster}" for stage in stages)
    names = (folder.name for parent in parents for folder in _folders(parent))
    return {name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)}


def _folders(parent: UPath) -> list[UPath]:
    try:
        return [child for child in parent.iterdir() if child.is_dir()] if parent.is_dir() else []
    except OSError as error:
        raise StorageError(f"can't list {parent}: {error.strerror or error}") from error
