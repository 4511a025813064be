"""`capture`: reads a cluster, without changing anything on it, into a raw snapshot."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pulsar_advisor.capture.capture import capture
from pulsar_advisor.capture.progress import CaptureProgress, LoggedProgress
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.storage.index import update_index
from pulsar_advisor.storage.results import read_manifest

if TYPE_CHECKING:
    from pulsar_advisor.admin.options import CaptureOptions
    from pulsar_advisor.storage.root import Root

_log = logging.getLogger(__name__)


def run(options: CaptureOptions, root: Root, progress: CaptureProgress | None = None) -> str:
    """Capture the cluster; returns the snapshot's id. Progress goes to the log by default. Raises as `capture`."""
    snapshot = capture(options, root, progress or LoggedProgress())
    update_index(root, snapshot)
    manifest = read_manifest(root, snapshot)
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
