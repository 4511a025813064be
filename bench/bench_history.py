"""Folding a day, the trend of weeks, the page over clusters: `bench_history.py [SNAPSHOTS BROKERS BUNDLES DAYS]`.

By default 96 snapshots of 100 brokers and 10,000 bundles, and 28 days of them. Bundles' rates wander at random, so they
compress as badly as any. Each figure is that of a new process: seconds, processor time, and the highest memory.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_ledger import MEASURED

import documents
from pulsar_advisor.model.cluster.bundle_range import format_range
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root
from pulsar_advisor.tables.columns import TRAFFIC
from pulsar_advisor.tables.schemas import TABLES
from pulsar_advisor.tables.stored import ARROW
from results import RESULTS, conditions, record

FIRST: Final = datetime(2026, 11, 1, tzinfo=UTC)
CLUSTER: Final = "bench"
CLUSTERS: Final = 50


def bundle_names(number: int) -> list[str]:
    """Names of this many bundles in 500 namespaces."""
    return [f"tenant/ns-{place % 500}/{format_range(place, place + 1)}" for place in range(number)]


def write_snapshots(root: Root, number: int, brokers: int, names: Sequence[str], days: int = 1) -> None:
    """Normalized and validated snapshots of these days, evenly spaced."""
    for place, columns in enumerate(_snapshots(number, brokers, names)):
        snapshot = root.snapshot(snapshot_id(FIRST + place * timedelta(days=days) / number))
        write_file(snapshot.folder("raw") / MANIFEST, documents.manifest(snapshot=snapshot.id).content())
        write_file(snapshot.folder("tables/result") / RESULT, documents.tables_result().content())
        write_file(snapshot.folder("validation") / RESULT, documents.validation(snapshot=snapshot.id).content())
        for table in TABLES:
            path = Path(str(snapshot.folder(f"tables/{table.name}"))) / "part-0.parquet"
            path.parent.mkdir(parents=True)
            given = columns.get(table.name, {})
            rows = len(next(iter(given.values()), ()))
            arrays = {
                column.name: pa.array(given[column.name], ARROW[column.type])
                if column.name in given
                else pa.nulls(rows, ARROW[column.type])
                for column in table.columns
            }
            pq.write_table(pa.table(arrays), path, compression="zstd")


def _snapshots(number: int, brokers: int, names: Sequence[str]) -> Iterator[dict[str, dict[str, object]]]:
    random = np.random.default_rng(1)
    ids = np.array([f"broker-{place:04}.example:8080" for place in range(brokers)])
    bundles = len(names)
    owner, rate = random.integers(0, brokers, bundles), random.lognormal(3, 1, bundles)
    for _ in range(number):
        rate *= random.lognormal(0, 0.05, bundles)
        moved = random.integers(0, bundles, bundles // 500)
        owner[moved] = random.integers(0, brokers, len(moved))
        flags = {flag: np.ones(bundles, bool) for flag in ("reported", "listed", "in_boundaries")}
        yield {
            "brokers": {
                "view": ["fresh"] * brokers,
                "broker": ids,
                "available": np.ones(brokers, bool),
                "reported": np.ones(brokers, bool),
                "cpu_usage": random.uniform(10, 90, brokers),
                "cpu_limit": np.full(brokers, 100.0),
                "owned_bundles": np.bincount(owner, minlength=brokers),
            },
            "bundles": {
                "view": ["fresh"] * bundles,
                "bundle": names,
                "owner": ids[owner],
                "moved": np.zeros(bundles, bool),
                "producers": np.ones(bundles, int),
                "consumers": random.integers(0, 9, bundles),
                **flags,
                **{column: rate * factor for column, factor in zip(TRAFFIC.values(), (1, 2, 1e3, 2e3), strict=True)},
            },
        }


def copy_days(source: Root, target: Root, days: int) -> None:
    """The folded first day of a cluster, as that of each of a cluster's first days."""
    first = f"{FIRST:%Y%m%d}"
    result = json.loads(Path(str(source.day(first).result_file)).read_text())
    for number in range(days):
        day = f"{FIRST + timedelta(days=number):%Y%m%d}"
        if (source.cluster, first) == (target.cluster, day):
            continue
        for table in (Path(source.url) / "history").iterdir():
            if table.name != "result":
                folders = (str(root.day(one).folder(table.name)) for root, one in ((source, first), (target, day)))
                shutil.copytree(*folders, copy_function=os.link)
        file = Path(str(target.day(day).result_file))
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(result | {"day": day, "cluster": target.cluster}))


def main(snapshots: int, brokers: int, bundles: int, days: int) -> None:
    """Print one table."""
    with tempfile.TemporaryDirectory() as folder:
        root = Root(folder, CLUSTER)
        write_snapshots(root, snapshots, brokers, bundle_names(bundles))
        print("| work | exit code | seconds | processor s | MiB |")
        print("| -- | -- | -- | -- | -- |")
        size = f"{snapshots} snapshots of {brokers:,} brokers and {bundles:,} bundles"
        last = Path(str(root.snapshot(root.snapshots()[-1]).folder("tables/result")))
        unseen = last.rename(Path(folder) / "unseen")
        measure(f"fold a day of {size}, but for the last", root, "history", "fold", "--all")
        unseen.rename(last)
        measure(f"fold the last of a day of {size}", root, "history", "fold", "--all")
        copy_days(root, root, days)
        measure(f"`trend` of {days} days of {size}", root, "trend", "--days", str(days))
        for number in range(1, CLUSTERS):
            copy_days(root, Root(folder, f"{CLUSTER}-{number}"), days)
        measure(f"`index` of {CLUSTERS} clusters, {days} days of {size} each", root, "index")
        load = next(Path(str(root.day(f"{FIRST:%Y%m%d}").folder("load"))).iterdir())
        print(f"\n{load.stat().st_size / pq.ParquetFile(load).metadata.num_rows:.1f} bytes for a bundle and snapshot")


def measure(work: str, root: Root, *verb: str) -> None:
    """Run a verb in a new process and print its row."""
    line = [sys.executable, "-c", MEASURED, *verb, "--root", root.url, "--cluster", CLUSTER]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    figures = done.stderr.splitlines()[-1].split(" ")
    print(f"| {work} | {' | '.join(figures)} |")
    row = dict(zip(("s", "processor s", "peak MiB"), figures[1:], strict=True))
    record(RESULTS / "waiting-times.tsv", [{"work": work, **row, **conditions()}])


if __name__ == "__main__":
    main(*(int(size) for size in sys.argv[1:5] or ("96", "100", "10000", "28")))
