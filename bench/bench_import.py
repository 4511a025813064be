"""Importing weeks from a real Prometheus: `bench_import.py [TOPICS DAYS STEP_S]`, by default 2,000 topics for 28 days.

`promtool` makes the blocks of its database, and Debian's `prometheus` answers from them. A broker exports the topics of
its bundles, of which one in fifty has another owner each day. Each figure of the import is that of a new process:
seconds, processor time, and the highest memory; the server's are below it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import psutil
from bench_history import CLUSTER, measure, write_snapshots

from harness.prometheus import running_prometheus
from pulsar_advisor.history.exported import HOST_METRICS, TOPICS
from pulsar_advisor.history.ring import Ring
from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND, format_range
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.storage.root import Root

BROKERS: Final = 30
TOPICS_OF_NAMESPACE: Final = 40
BUNDLES_OF_NAMESPACE: Final = 8
ONE_MOVES_OF: Final = 50
DAY_S: Final = 86_400


def bundles_of(topics: int) -> Ring:
    """The bundles of the topics' namespaces."""
    width = 2**32 // BUNDLES_OF_NAMESPACE
    ends = [min(width * place, FULL_UPPER_BOUND) for place in range(BUNDLES_OF_NAMESPACE + 1)]
    ranges = [format_range(*pair) for pair in pairwise(ends)]
    namespaces = [f"tenant/ns-{number}" for number in range(-(-topics // TOPICS_OF_NAMESPACE))]
    return Ring([f"{namespace}/{range_}" for namespace in namespaces for range_ in ranges], ())


def exposition(topics: int, ring: Ring, moments: list[int], cluster: str) -> Iterator[str]:
    """OpenMetrics text of the brokers' and topics' figures at these times of a day; rates wander at random."""
    day = moments[0] // DAY_S
    random = np.random.default_rng(day)
    for metric in HOST_METRICS.values():
        yield f"# TYPE {metric} gauge\n"
        for broker in range(BROKERS):
            labels = f'{{cluster="{cluster}",instance="broker-{broker:04}.example:8080"}}'
            for at, value in zip(moments, random.uniform(10, 90, len(moments)), strict=True):
                yield f"{metric}{labels} {value:.2f} {at}\n"
    for metric in TOPICS.metrics:
        yield f"# TYPE {metric} gauge\n"
        for topic in range(topics):
            namespace = f"tenant/ns-{topic // TOPICS_OF_NAMESPACE}"
            name = f"persistent://{namespace}/topic-{topic}"
            bundle = ring.bundle_of(namespace, name)
            owner = (bundle if bundle % ONE_MOVES_OF else day) % BROKERS
            instance = f"broker-{owner:04}.example:8080"
            labels = f'{{cluster="{cluster}",instance="{instance}",namespace="{namespace}",topic="{name}"}}'
            rates = 50 * np.exp(np.cumsum(random.normal(0, 0.05, len(moments))))
            yield "".join(
                f"{metric}{labels} {rate:.3f} {at}\n" for rate, at in zip(rates.tolist(), moments, strict=True)
            )
    yield "# EOF\n"


def write_blocks(folder: Path, topics: int, ring: Ring, days: int, step_s: int, cluster: str) -> None:
    """The database of a Prometheus with the last days; a day at a time, so that its text needs little room."""
    today_s = int(datetime.now(UTC).timestamp()) // DAY_S * DAY_S
    for day_s in range(today_s - days * DAY_S, today_s, DAY_S):
        text = folder / "day.txt"
        with text.open("w") as file:
            file.writelines(exposition(topics, ring, list(range(day_s, day_s + DAY_S, step_s)), cluster))
        subprocess.run(
            [
                "promtool",
                "tsdb",
                "create-blocks-from",
                "openmetrics",
                "--max-block-duration=24h",
                str(text),
                str(folder),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        text.unlink()


def main(topics: int, days: int, step_s: int) -> None:
    """Print one table."""
    with tempfile.TemporaryDirectory() as folder:
        root, ring = Root(str(Path(folder) / "root"), CLUSTER), bundles_of(topics)
        write_snapshots(root, 1, BROKERS, ring.names)
        database = Path(folder) / "database"
        database.mkdir()
        write_blocks(database, topics, ring, days, step_s, "pulsar-test")
        with running_prometheus(database) as server:
            print("| work | exit code | seconds | processor s | MiB |")
            print("| -- | -- | -- | -- | -- |")
            work = f"import {count(days, 'day')} of {topics:,} topics every {step_s} s"
            step = f"{step_s}s"
            measure(
                work, root, "history", "import", "--prometheus", server.url, "--days", str(days + 1), "--step", step
            )
            process = psutil.Process(server.process.pid)
            used, memory = process.cpu_times(), process.memory_info().rss / 2**20
            print(f"\nthe server's: {used.user + used.system:.1f} processor s, {memory:.0f} MiB at the end")


if __name__ == "__main__":
    main(*(int(size) for size in sys.argv[1:4] or ("2000", "28", "300")))
