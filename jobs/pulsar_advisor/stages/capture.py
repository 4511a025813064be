"""`capture`: reads a cluster, without changing anything on it, into a raw snapshot."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.capture.capture import Destination, capture, listening, opened
from pulsar_advisor.capture.progress import CaptureProgress, LoggedProgress
from pulsar_advisor.capture.publications import Heard
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.storage.claim import claimed, remove_remainders
from pulsar_advisor.storage.index import update_index
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot

_log = logging.getLogger(__name__)


def run(
    options: CaptureOptions, root: Root, progress: CaptureProgress | None = None, earlier: Heard | None = None
) -> Snapshot:
    """Capture the cluster. Progress goes to the log by default.

    `earlier` is what another process heard Extensible brokers publish; then nothing more is awaited. Raises as `opened`
    and `capture`, and `StorageError` if the root can't be written. After an error or an interruption there is no
    snapshot.
    """
    snapshot = take_snapshot(options, root, progress or LoggedProgress(), earlier)
    update_index(root, snapshot.id)
    manifest = read_manifest(snapshot)
    _log.info(
        "captured %s as snapshot %s: %s, %s in %s, %s missing, in %.1f s",
        root.cluster,
        snapshot,
        count(len(manifest.identity.broker_ids), "broker"),
        count(sum(file.rows for file in manifest.files), "line"),
        count(len(manifest.files), "file"),
        count(len(manifest.missing) + len(manifest.failures), "part"),
        (manifest.finished_at_ms - manifest.started_at_ms) / 1000,
    )
    return snapshot


def take_snapshot(
    options: CaptureOptions, root: Root, progress: CaptureProgress, earlier: Heard | None = None
) -> Snapshot:
    """The same, without an entry in the index."""
    with opened(options) as cluster:
        remove_remainders(root)
        with listening(cluster, progress, earlier) as listener:
            moment = datetime.now(UTC)
            with claimed(root, moment) as lease:

                def write(path: str, content: bytes) -> None:
                    lease.write(lease.folder / path, content)

                started_at_ms = int(moment.timestamp() * 1000)
                destination = Destination(root.cluster, lease.snapshot, started_at_ms, write)
                manifest = capture(cluster, listener, destination, progress)
                write(MANIFEST, manifest.content())
            return root.snapshot(lease.snapshot)
