"""A root of three clusters, and one rotten file of every kind: what a disk, a bug or a stranger may leave there."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import documents
from moments import FIRST, moment
from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.history.columns import COLUMNS
from pulsar_advisor.history.day import fold
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.index import update_index
from pulsar_advisor.storage.lease import LEASE
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root
from pulsar_advisor.tables.days import write_day
from unit.execution.actors import ALICE
from unit.execution.doubles import make_plan, unload_step

CLUSTERS: Final = ("prod-eu", "prod-us", "prod-asia")
ROTTEN: Final = "prod-eu"
OLD, NEW = "20261120T083000Z", "20261121T083000Z"
DAY: Final = "20261121"
NOT_A_TIME: Final = "20269999T999999Z"

NOT_WHAT_IT_SHOULD_BE: Final[Mapping[str, bytes | None]] = {
    "empty": b"",
    "half": b'{"schema": "pulsar-advisor/',
    "not text": b"\xff\xfe\x00",
    "another document": b'{"schema": "other/1"}',
    "a list": b"[]",
    "deeply nested": b'{"x":' * 100_000,
    "a number of 5,000 digits": b'{"x": ' + b"9" * 5000 + b"}",
    "a folder": None,
}
"""Contents of a file; None: a folder of its name."""


def write_root(folder: Path) -> None:
    """The three clusters: two snapshots each, the newer one processed, its plan in the ledger."""
    for name in CLUSTERS:
        root = Root(str(folder), name)
        older, newer = root.snapshot(OLD), root.snapshot(NEW)
        for snapshot in (older, newer):
            write_file(snapshot.folder("raw") / MANIFEST, documents.manifest(snapshot=snapshot.id).content())
        write_file(newer.folder("validation") / RESULT, documents.validation().content())
        plan = make_plan([unload_step()], cluster=name, snapshot=NEW)
        written = write_plan(root, plan)
        advice = documents.recommendation(plan=written.file, digest=written.digest, sentence="Move one bundle.")
        write_file(newer.folder("plans") / "recommendation.json", advice.content())
        report = newer.folder("reports") / "report.html"
        report.parent.mkdir(parents=True)
        report.write_text("<html></html>")
        with closing(open_ledger(root.ledger_url)) as ledger:
            propose(ledger, plan, ALICE)
        write_folded_day(root)
        update_index(root)


def write_folded_day(root: Root) -> None:
    """The day of the newer snapshot, folded."""
    tables = fold([moment(30, {FIRST: "a:8080"})])
    of = {"cluster": root.cluster, "cluster_name": "live", "day": DAY, "columns": COLUMNS, "snapshots": ()}
    write_day(root.day(DAY), tables, lambda files: HistoryDay(**of, tables=files), lambda: None)


def file_of(stage: str, name: str, snapshot: str = NEW) -> Callable[[Path], Path]:
    """Gives a file of the rotten cluster, or the one that a pattern finds."""

    def find(folder: Path) -> Path:
        place = folder / stage / f"cluster={ROTTEN}" / f"snapshot={snapshot}"
        return next(iter(place.glob(name)), place / name)

    return find


FILES: Final[Mapping[str, Callable[[Path], Path]]] = {
    "manifest": file_of("raw", MANIFEST),
    "validation": file_of("validation", RESULT),
    "tables": file_of("tables/result", RESULT),
    "recommendation": file_of("plans", "recommendation.json"),
    "plan": file_of("plans", "*--*.json"),
    "report": file_of("reports", "report.html"),
    "lease": file_of("plans", LEASE),
    "day": lambda folder: folder / "history" / "result" / f"cluster={ROTTEN}" / f"day={DAY}" / RESULT,
    "index": lambda folder: folder / "index" / f"cluster={ROTTEN}" / "snapshots.json",
}


def spoil(folder: Path, file: str, how: str) -> None:
    """Replace a file of the rotten cluster; lists read it from its own place, as there is no index then."""
    path = FILES[file](folder)
    content = NOT_WHAT_IT_SHOULD_BE[how]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    if file != "index":
        FILES["index"](folder).unlink(missing_ok=True)


def add_strange_folders(folder: Path) -> None:
    """Names that aren't those of snapshots and clusters, links in a circle, and files where folders should be."""
    for stage in ("raw", "plans", "reports", "validation"):
        cluster = folder / stage / f"cluster={ROTTEN}"
        for name in (NOT_A_TIME, "", "\u202e", "20261121T0830\u0660\u0660Z"):
            strange = cluster / f"snapshot={name}"
            strange.mkdir(parents=True, exist_ok=True)
            for file in (MANIFEST, RESULT, "recommendation.json", "report.html"):
                (strange / file).write_bytes(b"{")
        (cluster / "snapshot=20261119T083000Z").symlink_to("snapshot=20261119T083000Z")
        (cluster / "snapshot=20261118T083000Z").write_bytes(b"")
        (folder / stage / "cluster=").mkdir()
        (folder / stage / "cluster=\u202e \x1b[2J").mkdir()
        (folder / stage / "cluster=file").write_bytes(b"")
    FILES["index"](folder).unlink(missing_ok=True)


def spoil_plan_in_ledger(folder: Path) -> None:
    """Spoil the document of the rotten cluster's plan and remove its summary, as the database's owner can."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        connection.executescript(
            "DROP TRIGGER plans_fixed;"
            f"UPDATE plans SET document = '{{\"x' WHERE cluster = '{ROTTEN}';"
            f"DELETE FROM plan_summaries WHERE cluster = '{ROTTEN}';"
        )
