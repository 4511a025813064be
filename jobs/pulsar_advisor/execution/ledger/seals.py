"""Seals: what each stage wrote, by hash in the ledger, so that whoever writes files can't change what is judged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Final

from upath import UPath

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.model.errors import AdvisorError, Refused, StorageError
from pulsar_advisor.model.plans.canonical_json import canonical_json
from pulsar_advisor.storage.files import read_file, sha256_hex, sha256_of_file
from pulsar_advisor.storage.plans import PLANS, RECOMMENDATION, read_recommendation
from pulsar_advisor.storage.results import read_tables_result
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root

RELEASE: Final = version("pulsar-rebalance-advisor")

_WRITTEN_ONCE: Final = frozenset({"normalize", "validate"})
"""The stages that leave a result as it is if there is one."""

_log = logging.getLogger(__name__)

_RESULT_FILE: Final = {
    "capture": ("raw", MANIFEST),
    "normalize": ("tables/result", RESULT),
    "validate": ("validation", RESULT),
    "recommend": (PLANS, RECOMMENDATION),
}
"""Stage -> folder and name of the file that it writes last. The manifest holds the hashes of all raw files."""


@contextmanager
def sealing(opened: Callable[[], Ledger], root: Root, snapshot: str, *stages: str) -> Iterator[None]:
    """Record in a ledger what stages write about a snapshot within the block; see `seal`.

    A result that is there before isn't theirs: they leave it as it is, and anyone may have put it there.
    """
    there = {stage for stage in stages if stage in _WRITTEN_ONCE and _result_file(root, snapshot, stage).exists()}
    yield
    seal(opened, root, snapshot, *(stage for stage in stages if stage not in there))


def seal(opened: Callable[[], Ledger], root: Root, snapshot: str, *stages: str) -> None:
    """Record in a ledger what stages have just written about a snapshot.

    Without a ledger that can be written to, it is logged that a person has to approve the snapshot's plans.
    """
    if not stages:
        return
    try:
        ledger = opened()
        try:
            for stage in stages:
                if (sha256 := result_sha256(root, snapshot, stage)) is not None:
                    plans = _listed(root, snapshot) if stage == "recommend" else ()
                    ledger.record_seal(root.cluster, snapshot, stage, sha256, plans, RELEASE)
        finally:
            ledger.close()
    except (AdvisorError, OSError) as error:
        _log.warning("snapshot %s is not sealed, so no policy can approve its plans: %s", snapshot, error)


def result_sha256(root: Root, snapshot: str, stage: str) -> str | None:
    """SHA-256 (hex) of what a stage wrote about a snapshot; None if it hasn't, or not any more."""
    path = _result_file(root, snapshot, stage)
    if not path.exists():
        return None
    if stage != "normalize":
        return sha256_hex(read_file(path, stage))
    tables = sorted(read_tables_result(root, snapshot).tables)
    files = {file: sha256 for table in tables for file, sha256 in _hashes(root.folder(f"tables/{table}", snapshot))}
    return sha256_hex(canonical_json({"result": sha256_hex(read_file(path, stage)), **files}))


def _result_file(root: Root, snapshot: str, stage: str) -> UPath:
    folder, name = _RESULT_FILE[stage]
    return root.folder(folder, snapshot) / name


def require_as_sealed(ledger: Ledger, root: Root, snapshot: str, stage: str) -> str | None:
    """Why a stage's result can't be compared with its newest seal; None if they agree, or if there is neither.

    Raises `Refused` if they differ.
    """
    of_stage = (one for one in reversed(ledger.seals(root.cluster, snapshot)) if one.stage == stage)
    sealed, found = next(of_stage, None), result_sha256(root, snapshot, stage)
    if sealed is None:
        return found and f"this ledger has no seal of what `{stage}` wrote about snapshot {snapshot}"
    if found is None:
        return f"what `{stage}` wrote about snapshot {snapshot} is no longer there"
    if found != sealed.sha256:
        raise Refused(
            f"what `{stage}` wrote about snapshot {snapshot} was changed since: its SHA-256 is {found}, and "
            f"{sealed.name} of the ledger says {sealed.sha256}. Run `{stage}` again, and find out who changed it"
        )
    return None


def _listed(root: Root, snapshot: str) -> list[str]:
    """The digests of the plans that the recommendation of a snapshot lists."""
    return sorted({row.digest for row in read_recommendation(root, snapshot).combinations if row.digest})


def _hashes(folder: UPath) -> Iterator[tuple[str, str]]:
    """Each file below a folder, by its path from `tables` on, and its SHA-256 (hex)."""
    try:
        for file in sorted(folder.rglob("*"), key=str):
            if file.is_file():
                yield f"{folder.parent.parent.name}/{file.path.removeprefix(folder.path)}", sha256_of_file(file)
    except OSError as error:
        raise StorageError(f"can't read {folder}: {error.strerror or error}") from error
