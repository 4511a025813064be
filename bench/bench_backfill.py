"""Folding weeks of snapshots on Spark: `bench_backfill.py [DAYS BROKERS BUNDLES]`, by default 30 days, 100 x 10,000.

96 snapshots a day. Once on a local Spark and once on a standalone cluster with one worker, of two cores each, Spark's
start included; the folded days of both must be the same bytes.
"""

from __future__ import annotations

import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Final

from bench_capture import watched
from bench_history import CLUSTER, bundle_names, write_snapshots
from bench_run import heading, show

from harness.standalone_spark import running_spark
from pulsar_advisor.storage.root import Root

JOB: Final = Path(__file__).resolve().parents[1] / "jobs" / "fold.py"
OF_A_DAY: Final = 96


def main(days: int, brokers: int, bundles: int) -> None:
    """Print one table. Raises `SystemExit` if the days differ."""
    with tempfile.TemporaryDirectory() as folder:
        root = Root(f"{folder}/root", CLUSTER)
        write_snapshots(root, days * OF_A_DAY, brokers, bundle_names(bundles), days)
        command = [sys.executable, str(JOB), "--root", root.url, "--cluster", CLUSTER, "--before", "20300101"]
        heading()
        work = f"fold {days} days of {OF_A_DAY} snapshots of {brokers:,} brokers and {bundles:,} bundles"
        show(f"{work}, local[2]", *watched([*command, "--master", "local[2]"]), "90")
        local = take(root)
        with running_spark(Path(folder), memory="4g") as spark:
            show(f"{work}, a standalone cluster: the driver", *watched([*command, "--master", spark.master]), "90")
        if take(root) != local:
            raise SystemExit("the days differ")
        print(f"\nthe same {len(local)} files")


def take(root: Root) -> dict[str, str]:
    """The hash of each file of the folded days, which are removed."""
    history = Path(root.url) / "history"
    files = {
        str(file.relative_to(history)): sha256(file.read_bytes()).hexdigest()
        for file in sorted(history.rglob("*.parquet"))
    }
    rmtree(history)
    return files


if __name__ == "__main__":
    main(*(int(size) for size in sys.argv[1:4] or ("30", "100", "10000")))
