"""What commands with a one-line answer print: what was done, and to what."""

from __future__ import annotations

from pulsar_advisor.documents.document import Part
from pulsar_advisor.documents.runs import RunState


class Withdrawn(Part):
    """`withdraw`: how many approvals of a plan were taken back."""

    digest: str
    withdrawn: int


class EndedRun(Part):
    """`apply --pause` and `--abort`: a run that was to end."""

    run: int
    digest: str
    state: RunState
    """After `--pause` still active, until its steps in flight are done."""


class ProposedUndo(Part):
    """`undo`: the plan that was proposed."""

    plan: str
    """Its file."""
    digest: str
    executable_steps: tuple[str, ...]


class ImportedSnapshot(Part):
    """`snapshots import`: the snapshot that was taken out of an archive."""

    cluster: str
    snapshot: str


class ExportedSnapshot(ImportedSnapshot):
    """`snapshots export`: the snapshot, and the archive it was written into."""

    archive: str
