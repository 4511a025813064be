"""`brokers`: what `pulsar-perf monitor-brokers` shows, from a raw snapshot."""

from __future__ import annotations

from dataclasses import replace

from pulsar_advisor.documents.manifest import File
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.monitor.loads import load_in_snapshot, planned_usage
from pulsar_advisor.monitor.tables import ClusterLoad
from pulsar_advisor.storage.files import read_file, sha256_hex
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.judged import settings_of
from pulsar_advisor.tables.state import cluster_state


def run(snapshot: Snapshot) -> ClusterLoad:
    """The brokers' load in a snapshot and, once it is normalized, the usage that its plans start from.

    Raises `UsageError` if there is no such snapshot or it has no raw files any more; `DataNotFit` if a file isn't as
    captured, or comes from an archive with lines that no capture writes.
    """
    folder, manifest = snapshot.folder("raw"), read_manifest(snapshot)

    def content(file: File) -> bytes:
        path = folder / file.path
        if not path.exists():
            raise UsageError(
                f"{folder} has no {file.path} any more: put its raw files back with `snapshots import`, or name a "
                "later snapshot"
            )
        packed = read_file(path, "capture")
        if sha256_hex(packed) != file.sha256:
            raise DataNotFit(f"{path} is not the file that was captured; copy or capture the snapshot again")
        return packed

    load = load_in_snapshot(snapshot.root.cluster, manifest, content)
    if not snapshot.is_written("normalize"):
        return load
    planned = planned_usage(cluster_state(snapshot, with_topics=False), settings_of(snapshot, {}).values)
    return replace(load, planned=planned)
