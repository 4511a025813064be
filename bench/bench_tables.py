"""Time of `normalize`: `bench_tables.py [TOPICS]... [--root ROOT]`, by default a million and ten million.

Each size is a synthetic cluster (`large_cluster.py`) with 100 topics per bundle and 100 bundles per broker, captured
first; `--root` uses the snapshots left by `bench_capture.py --keep ROOT`. The job runs as from a shell, on a local
master with its usual settings there (4 GiB of heap), and the time includes its start-up. Rates refer to uncompressed
JSON lines; the rate per core uses processor seconds, as the machine may have other work to do.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import zstandard
from bench_capture import CORES, watched, whole_capture
from large_cluster import CLUSTER, LargeCluster, served
from upath import UPath

from pulsar_advisor.documents.manifest import File, Manifest
from pulsar_advisor.storage.results import read_document, read_tables_result
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot
from results import RESULTS, conditions, record

SIZES = (1_000_000, 10_000_000)
SAMPLE = 10
JOB = Path(__file__).parents[1] / "jobs" / "normalize.py"


def captured(topics: int, root: str) -> None:
    with served(LargeCluster(topics // 10_000, topics // 100, topics)) as broker:
        whole_capture(f"http://{broker}", root)


def uncompressed_bytes(folder: UPath, files: Sequence[File]) -> int:
    """The size of all files, extrapolated from a sample of the topic documents."""
    topics = [file for file in files if file.surface == "topic_stats"]
    others = [file for file in files if file.surface != "topic_stats"]
    sample = topics[:SAMPLE]
    return _decompressed(folder, others) + _decompressed(folder, sample) * len(topics) // len(sample)


def _decompressed(folder: UPath, files: Sequence[File]) -> int:
    total = 0
    for file in files:
        with zstandard.ZstdDecompressor().stream_reader((folder / file.path).read_bytes()) as reader:
            while block := reader.read(1 << 20):
                total += len(block)
    return total


def measure(snapshot: Snapshot) -> tuple[int, float]:
    """Normalize one snapshot, print its line, and return (topics, processor seconds)."""
    folder = snapshot.folder("raw")
    files = read_document(folder / MANIFEST, Manifest).files
    shutil.rmtree(snapshot.root.path / "tables", ignore_errors=True)
    command = [sys.executable, str(JOB), "--root", snapshot.root.url, "--cluster", CLUSTER, "--snapshot", snapshot.id]
    cost, peak = watched([*command, "--master", f"local[{CORES}]"])
    result = read_tables_result(snapshot)
    topics, size = result.tables["topics"], uncompressed_bytes(folder, files)
    print(
        f"| {topics:,} | {size / 1e9:.2f} | {cost.seconds:.1f} | {cost.processor_s:.1f} | "
        f"{size / cost.processor_s / 1e6:.1f} | {topics / cost.seconds:,.0f} | {peak / 2**20:,.0f} |",
        flush=True,
    )
    figures = {"GB of lines": f"{size / 1e9:.2f}", "s": f"{cost.seconds:.1f}", "processor s": f"{cost.processor_s:.1f}"}
    rates = {"topics/s": f"{topics / cost.seconds:,.0f}", "peak MiB": f"{peak / 2**20:,.0f}"}
    row = {"topics": f"{topics:,}", **figures, **rates, **conditions()}
    record(RESULTS / "normalize.tsv", [row])
    return topics, cost.processor_s


def main() -> None:
    arguments = sys.argv[1:]
    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f}\n")
    print(
        "| topics | GB of lines | normalize s | processor s | MB/s a core | topics/s | peak MiB |\n" + "|---" * 7 + "|",
        flush=True,
    )
    if "--root" in arguments:
        root = Root(arguments[arguments.index("--root") + 1], CLUSTER)
        done = [measure(root.snapshot(snapshot)) for snapshot in root.snapshots()]
    else:
        done = []
        for topics in [int(argument) for argument in arguments] or SIZES:
            with tempfile.TemporaryDirectory() as folder:
                captured(topics, folder)
                root = Root(folder, CLUSTER)
                done.append(measure(root.resolve("latest")))
    (fewest, shortest), (most, longest) = min(done), max(done)
    if most > fewest:
        print(f"\n{most / fewest:.0f} × the topics take {longest / shortest:.1f} × the processor time")


if __name__ == "__main__":
    main()
