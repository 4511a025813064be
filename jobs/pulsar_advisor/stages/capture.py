"""`capture`: reads a cluster, without changing anything on it, into a raw snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_advisor.capture.capture import capture
from pulsar_advisor.capture.progress import shown_progress
from pulsar_advisor.storage.index import update_index

if TYPE_CHECKING:
    from pulsar_advisor.admin.options import CaptureOptions
    from pulsar_advisor.storage.root import Root


def run(options: CaptureOptions, root: Root, *, quiet: bool = False) -> str:
    """Capture the cluster, showing progress on stderr; returns the snapshot's id. Raises as `capture.capture`."""
    with shown_progress(quiet=quiet) as progress:
        snapshot = capture(options, root, progress)
    update_index(root, snapshot)
    return snapshot
