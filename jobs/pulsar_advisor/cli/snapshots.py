"""The verbs that manage snapshots: list, show, prune, export, import."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from pulsar_advisor.cli.options import Flag, Json, SnapshotId, WholeNumberIfAny
from pulsar_advisor.cli.output import print_json, say, say_lines
from pulsar_advisor.cli.places import LedgerPlace, Place
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.model.bounds import MAX_AGE, seconds
from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.storage.root import LATEST, Root


def list_snapshots(*, max_age: str | None = None, place: Place = Place(), json: Json = False) -> None:
    """List the snapshots of a cluster, oldest first.

    Parameters
    ----------
    max_age
        End with exit code 3 unless a snapshot that led to advice is at most this old, such as 45m.
    """
    max_age_s = None if max_age is None else seconds(max_age)
    MAX_AGE.check(max_age_s)
    root = place.open()
    ids = root.snapshots()
    if not ids:
        root.require_there()
        root.require_known()
    none = f"no snapshots of cluster '{root.cluster}' under {root.location}"
    print_json(ids) if json else say("\n".join(ids) or none)
    if max_age_s is not None:
        _require_advised_since(root, datetime.now(UTC) - timedelta(seconds=max_age_s))


def _require_advised_since(root: Root, oldest: datetime) -> None:
    """Raise `DataNotFit` unless a snapshot since then passed validation and was recommended on."""
    from pulsar_advisor.storage.index import newest_advised, why_no_advice

    advised = newest_advised(root, datetime.now(UTC))
    if advised is None or snapshot_moment(advised) < oldest:
        raise DataNotFit(f"{why_no_advice(oldest, advised)}; see what `pulsar-advisor run` says")


def show_snapshot(snapshot: SnapshotId = LATEST, /, *, place: Place = Place(), json: Json = False) -> None:
    """Show what a snapshot holds, what it lacks, and which stages have processed it."""
    from pulsar_advisor.snapshots.summary import summary_lines
    from pulsar_advisor.stages.show import run as summary

    found = summary(place.at(snapshot))
    print_json(found) if json else say_lines(summary_lines(found))


def prune_snapshots(
    *,
    place: LedgerPlace = LedgerPlace(),
    keep_days: WholeNumberIfAny = None,
    keep_count: WholeNumberIfAny = None,
    raw: str | None = None,
    tables: str | None = None,
    thin: str | None = None,
    history: str | None = None,
    dry_run: Annotated[bool, Flag] = False,
    json: Json = False,
) -> None:
    """Remove old snapshots and all that was made from them; the newest stays, and every one that a plan refers to.

    Choose by age and number; or, where snapshots are folded into days, by how long each form of them lasts: then no
    snapshot goes before its day is over and holds it, and those that an event refers to stay as long as their day.

    Parameters
    ----------
    keep_days
        Keep snapshots younger than this many days.
    keep_count
        Keep this many of the newest snapshots.
    raw
        Keep the files that snapshots were normalized from for this long, such as 3d.
    tables
        Keep every snapshot for this long, such as 14d.
    thin
        Of older snapshots, keep one per interval up to an age, such as 1h:30d,1d:1y.
    history
        Keep folded days for this long, such as 400d.
    dry_run
        Say what would be removed; remove nothing.
    """
    from pulsar_advisor.snapshots.retention import Retention, lifetimes
    from pulsar_advisor.stages.prune import run as prune
    from pulsar_advisor.stages.thin import run as prune_by_age

    given = {"raw": raw, "tables": tables, "thin": thin, "history": history}
    ages = {name: text for name, text in given.items() if text is not None}
    refuse_together(
        {
            "--keep-days or --keep-count": keep_days is not None or keep_count is not None,
            **{f"--{name}": True for name in list(ages)[:1]},
        }
    )
    root, address, now = place.open(), place.given_ledger(), datetime.now(UTC)
    if ages:
        pruned = prune_by_age(root, lifetimes(**ages), address, now, dry_run=dry_run)
    else:
        pruned = prune(root, Retention(keep_days, keep_count), address, now, dry_run=dry_run)
    print_json(pruned) if json else say_lines(pruned.lines())


def export(file: Path, /, *, place: Place = Place(), snapshot: SnapshotId = LATEST, json: Json = False) -> None:
    """Write a raw snapshot into one archive.

    Parameters
    ----------
    file
        Archive to write.
    """
    from pulsar_advisor.documents.receipts import ExportedSnapshot
    from pulsar_advisor.storage.archive import export_snapshot

    chosen = place.at(snapshot)
    export_snapshot(chosen, file)
    exported = ExportedSnapshot(cluster=chosen.root.cluster, snapshot=chosen.id, archive=str(file))
    print_json(exported) if json else say(exported.archive)


def import_(file: Path, /, *, place: Place = Place(), json: Json = False) -> None:
    """Import a raw snapshot from an archive; prints its id.

    Parameters
    ----------
    file
        Archive written by `snapshots export`.
    """
    from pulsar_advisor.documents.receipts import ImportedSnapshot
    from pulsar_advisor.storage.archive import import_snapshot

    snapshot = import_snapshot(file, place.open())
    imported = ImportedSnapshot(cluster=snapshot.root.cluster, snapshot=snapshot.id)
    print_json(imported) if json else say(imported.snapshot)
