"""Records in the ledger the hash of what each stage wrote, and later compares it with what is there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.seals import record_seal, seals_of_snapshot, why_not_as_sealed
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.storage.files import sha256_hex, sha256_of_file
from pulsar_advisor.storage.plans import read_recommendation
from pulsar_advisor.storage.results import result_sha256
from pulsar_advisor.storage.root import Day, Snapshot

_WRITTEN_ONCE: Final = frozenset({"normalize", "validate"})
"""The stages that leave a result as it is if there is one."""

Opened = Callable[[], AbstractContextManager[Ledger]]
"""Opens a ledger for a block."""

_log = logging.getLogger(__name__)


@contextmanager
def sealing(opened: Opened, snapshot: Snapshot, *stages: str) -> Iterator[None]:
    """Record in a ledger what stages write about a snapshot within the block; see `seal`.

    A result that was there before isn't recorded: stages leave it as it is, and anyone may have put it there.
    """
    there = {stage for stage in stages if stage in _WRITTEN_ONCE and snapshot.is_written(stage)}
    yield
    seal(opened, snapshot, *(stage for stage in stages if stage not in there))


def seal(opened: Opened, snapshot: Snapshot, *stages: str) -> None:
    """Record in a ledger what stages have just written about a snapshot.

    Without a writable ledger, logs that a person has to approve the snapshot's plans.
    """
    if not stages:
        return
    try:
        with opened() as ledger:
            for stage in stages:
                if (sha256 := result_sha256(snapshot, stage)) is not None:
                    plans = _listed(snapshot) if stage == "recommend" else ()
                    record_seal(ledger, snapshot.root.cluster, snapshot.id, stage, sha256, plans)
    except (AdvisorError, OSError) as error:
        _log.warning("snapshot %s is not sealed, so no policy can approve its plans: %s", snapshot, error)


def require_as_sealed(ledger: Ledger, snapshot: Snapshot, *stages: str) -> str | None:
    """Why one of these stages' results can't be compared with its newest seal; None if all existing results agree.

    Raises `Refused` if one differs.
    """
    seals = seals_of_snapshot(ledger, snapshot.root.cluster, snapshot.id)
    found = [(stage, result_sha256(snapshot, stage)) for stage in stages]
    reasons = [why_not_as_sealed(seals, snapshot.id, stage, sha256) for stage, sha256 in found]
    return next(filter(None, reasons), None)


def seal_day(ledger: Ledger, day: Day, folded: HistoryDay) -> None:
    """Record a folded day before it is written: if the write fails, the previous file still has its own seal.

    A day folded before there was a ledger is sealed here first; otherwise it would look changed.
    """
    if day.result_file.exists() and not was_sealed(ledger, day):
        record_seal(ledger, day.root.cluster, day.date, folded.MADE_BY, sha256_of_file(day.result_file), ())
    record_seal(ledger, day.root.cluster, day.date, folded.MADE_BY, sha256_hex(folded.content()), ())


def was_sealed(ledger: Ledger, day: Day) -> bool:
    """Whether a folded day of this date was ever recorded."""
    return bool(seals_of_snapshot(ledger, day.root.cluster, day.date))


def is_sealed_elsewhere(ledger: Ledger | None, day: Day, folded: HistoryDay) -> bool:
    """Whether a folded day is sealed, but in another ledger: there is none here, or it has no seal of this day."""
    return folded.is_sealed and (ledger is None or not was_sealed(ledger, day))


def why_no_sealed_day(ledger: Ledger, day: Day) -> str | None:
    """Why a folded day isn't as recorded; None if it is, or if this day was never recorded."""
    sealed = {one.sha256 for one in seals_of_snapshot(ledger, day.root.cluster, day.date)}
    if not sealed or sha256_of_file(day.result_file) in sealed:
        return None
    return f"{day.result_file} was changed since: the ledger has seals of this day, but none of this file"


def _listed(snapshot: Snapshot) -> list[str]:
    """The digests of the plans that the recommendation of a snapshot lists."""
    return sorted({row.digest for row in read_recommendation(snapshot).combinations if row.digest})
