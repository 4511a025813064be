"""Records scalable topics as their controllers change them: a capture before a split and a merge, and one after."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.admin_api import AdminApi
from harness.capturing import take_snapshot
from harness.cluster import ClusterOptions, LiveCluster
from harness.errors import HarnessError
from harness.load import running_load
from harness.scalable_load import (
    LAST_HASH,
    SCALABLE_RELEASE,
    Stream,
    active_segments,
    create,
    running_streams,
    wait_for_segments,
)
from harness.skew import wait_for_skew
from pulsar_advisor.storage.archive import export_snapshot
from pulsar_advisor.storage.root import Root, Snapshot

HOT: Final = "topic://retail/live/orders"
"""A quarter of its key hashes has almost all of its load, and half of them have none."""
COLD: Final = "topic://retail/live/returns"
"""Nothing is sent to it but to its first segment."""
SEGMENTS: Final = 4
BUNDLES: Final = 8
QUARTER: Final = (LAST_HASH + 1) // SEGMENTS
STREAMS: Final = (
    Stream(HOT, 0, QUARTER - 1, 400),
    Stream(HOT, QUARTER, 2 * QUARTER - 1, 60),
    Stream(COLD, 0, QUARTER - 1, 60),
)

WHILE_WATCHED: Final = {
    "scalableTopicSplitMsgRateInThreshold": "300",
    "scalableTopicMergeMsgRateInThreshold": "20",
    "scalableTopicMergeCooldownSeconds": "30",
    "scalableTopicMergeWindowSeconds": "30",
}
"""Pulsar's own limits are for loads that a small machine doesn't bear, and its windows last five minutes."""
CHANGED_WITHIN_S: Final = 420
REPORTED_WITHIN_S: Final = 60
_AUTO_SCALE: Final = "/brokers/configuration/scalableTopicAutoScaleEnabled"

CLUSTER_OF_RECORDING: Final = "demo"
RECORDED: Final = Path(__file__).resolve().parents[1] / "data" / "recorded"
BEFORE: Final = f"scalable-{SCALABLE_RELEASE}-before.tar"
AFTER: Final = f"scalable-{SCALABLE_RELEASE}-after.tar"
LARGEST_BYTES: Final = 1_000_000


@dataclass(frozen=True)
class Changed:
    """Two snapshots, and the active segments of each topic (descriptors by id) at both."""

    before: Snapshot
    after: Snapshot
    segments_before: dict[str, dict[int, str]]
    segments_after: dict[str, dict[int, str]]


@contextmanager
def scalable_topics(cluster: LiveCluster) -> Iterator[None]:
    """Both topics, under load and left alone by their controllers, for the time of the block."""
    cluster.admin.write("POST", f"{_AUTO_SCALE}/false")
    for key, value in WHILE_WATCHED.items():
        cluster.admin.write("POST", f"/brokers/configuration/{key}/{value}")
    for topic in (HOT, COLD):
        create(cluster.admin, topic, SEGMENTS, BUNDLES)
    with running_streams(cluster, STREAMS):
        wait_until_loaded(cluster)
        yield


def wait_until_loaded(cluster: LiveCluster) -> None:
    """Until the brokers report a load of every segment that has some. Raises `HarnessError` if they don't in time."""
    deadline = time.monotonic() + REPORTED_WITHIN_S
    while len(loaded_segments(cluster)) < len(STREAMS):
        if time.monotonic() > deadline:
            raise HarnessError(f"Under load are {sorted(loaded_segments(cluster))} only.")
        time.sleep(1)


def loaded_segments(cluster: LiveCluster) -> set[str]:
    """The full names of the segments that messages arrive at, as of the brokers' last statistics pass."""
    return {
        name
        for url in cluster.admin_urls
        for name, stats in cluster.admin.topics(url).items()
        if name.startswith("segment://") and stats["msgRateIn"] > 1
    }


def watch_controllers(cluster: LiveCluster, root: Root) -> Changed:
    """Let the controllers split the hot segment and merge cold ones, with a snapshot before and one after.

    Afterwards they leave all segments as they are, so what a plan is about stays.

    Raises:
        HarnessError: they had changed something before the first snapshot was over.
        LoadDidNotStart: they changed nothing in time.
    """
    admin = cluster.admin
    first = {topic: active_segments(admin, topic) for topic in (HOT, COLD)}
    admin.write("DELETE", _AUTO_SCALE)
    before = take_snapshot(cluster, root)
    if {topic: active_segments(admin, topic) for topic in first} != first:
        raise HarnessError("A controller was faster than the first snapshot: try again.")
    hot = wait_for_segments(admin, HOT, lambda now: 0 not in now, CHANGED_WITHIN_S)
    cold = wait_for_segments(admin, COLD, lambda now: len(now) < SEGMENTS, CHANGED_WITHIN_S)
    admin.write("POST", f"{_AUTO_SCALE}/false")  # what comes next would be between the reads of the second snapshot
    time.sleep(2 * _statistics_s(admin))
    wait_until_loaded(cluster)
    after = take_snapshot(cluster, root)
    return Changed(before, after, first, {HOT: hot, COLD: cold})


def _statistics_s(admin: AdminApi) -> int:
    """How often brokers look at their topics' rates."""
    return int(admin.read("/brokers/configuration/runtime")["statsUpdateFrequencyInSecs"])


def record_scalable(folder: Path) -> list[Path]:
    """Record such a cluster, with the demo's skewed load beside the scalable topics; the two archives.

    Raises:
        HarnessError: an archive exists, or is too large, or the controllers did not do their part.
    """
    archives = [folder / BEFORE, folder / AFTER]
    if there := [file for file in archives if file.exists()]:
        raise HarnessError(f"{there[0]} exists already: remove it first.")
    with (
        LiveCluster(ClusterOptions(release=SCALABLE_RELEASE)) as cluster,
        running_load(cluster),
        scalable_topics(cluster),
        tempfile.TemporaryDirectory() as captured,
    ):
        wait_for_skew(cluster.admin)
        changed = watch_controllers(cluster, Root(captured, CLUSTER_OF_RECORDING))
        for archive, snapshot in zip(archives, (changed.before, changed.after), strict=True):
            export_snapshot(snapshot, archive)
            if archive.stat().st_size > LARGEST_BYTES:
                raise HarnessError(f"{archive} is larger than {LARGEST_BYTES} bytes.")
    return archives
