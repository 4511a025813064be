"""`doctor`: sends a cluster the requests that a capture would, tries the root, and judges both."""

from __future__ import annotations

from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.diagnosis.examination import examine
from pulsar_advisor.diagnosis.findings import diagnose, writable
from pulsar_advisor.documents.diagnosis import Diagnosis
from pulsar_advisor.storage.files import why_not_writable
from pulsar_advisor.storage.root import Root


def run(options: CaptureOptions, root: Root | None) -> Diagnosis:
    """Whether a capture made now would produce a usable snapshot; without a root, only as far as the cluster goes."""
    found = examine(options)
    return diagnose(found) if root is None else diagnose(found, writable(str(root.path), why_not_writable(root.path)))
