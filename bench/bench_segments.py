"""Cost of segments: `bench_segments.py [TOPICS [TURNS]]`, `normalize` of as many segments as partitions, by turns.

Two made-up clusters that differ only in their topics: the partitions of one topic, or the segments of scalable topics
that were split and merged a hundred times each. A figure is the processor time of the whole job, as from a shell.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile

from bench_capture import CORES, watched
from bench_tables import JOB

from pulsar_advisor.storage.root import Root
from results import RESULTS, conditions, record
from scalable_topics import Segment, scalable_topic
from snapshots import RawSnapshot, skewed_modular_cluster

CHANGES = 100
BUNDLES = {"shop/orders": 512, "shop/payments": 512}
FEW = 120


def partitioned(topics: int) -> RawSnapshot:
    """A cluster of partitions and a few ordinary topics."""
    return skewed_modular_cluster(version="5.0.1", bundles=BUNDLES, topics=topics, partitions=topics - FEW)


def segmented(topics: int) -> RawSnapshot:
    """The same with segments; the sealed ones count too."""
    chance, segments = random.Random(7), list[Segment]()
    while len(segments) < topics - FEW:
        segments += scalable_topic(f"topic://shop/payments/scalable-{len(segments):07}", CHANGES, chance)
    return skewed_modular_cluster(version="5.0.1", bundles=BUNDLES, topics=FEW, segments=segments[: topics - FEW])


def main(topics: int = 100_000, turns: int = 3) -> None:
    """Print processor seconds of each turn, and the ratio of their medians."""
    taken: dict[str, list[float]] = {"partitions": [], "segments": []}
    with tempfile.TemporaryDirectory() as folder:
        made = {"partitions": partitioned(topics), "segments": segmented(topics)}
        for turn in range(turns):
            for kind, raw in made.items():
                snapshot = raw.write(Root(f"{folder}/{kind}-{turn}", "bench"))
                command = [sys.executable, str(JOB), "--root", snapshot.root.url, "--cluster", "bench"]
                cost, _ = watched([*command, "--snapshot", snapshot.id, "--master", f"local[{CORES}]"])
                taken[kind].append(cost.processor_s)
                print(f"{kind:<12}{cost.processor_s:>8.1f} processor s", flush=True)
    medians = {kind: statistics.median(seconds) for kind, seconds in taken.items()}
    ratio = medians["segments"] / medians["partitions"]
    print(f"{topics:,} segments take {ratio:.2f} × what as many partitions do")
    figures = {f"{kind}, processor s": f"{seconds:.1f}" for kind, seconds in medians.items()}
    record(RESULTS / "segments.tsv", [{"topics": f"{topics:,}", **figures, "ratio": f"{ratio:.2f}", **conditions()}])


if __name__ == "__main__":
    main(*(int(text) for text in sys.argv[1:]))
