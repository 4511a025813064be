"""The snapshots before one: what its figures, and the results of its checks, are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulsar_advisor.storage import RESULT, Root, read_json
from pulsar_advisor.tables.schemas import VALIDATION_RESULT_SCHEMA

RESULTS_COMPARED: Final = 10
"""Earlier results that a trend looks back on."""


@dataclass(frozen=True)
class CheckRow:
    """One check of one snapshot: a row of the history of quality."""

    snapshot: str
    check: str
    severity: str
    success: bool
    failed_rows: int
    evaluated: bool
    """False where the check could not be evaluated, which is not the same as failed."""


def normalized_before(root: Root, snapshot: str) -> str | None:
    """The newest earlier snapshot that has tables."""
    return next(_before(root, snapshot, "tables/result"), None)


def good_before(root: Root, snapshot: str) -> str | None:
    """The newest earlier snapshot whose validation found it fit for use."""
    return next((one for one in _before(root, snapshot, "validation") if _result(root, one)["success"]), None)


def quality_history(root: Root, snapshot: str) -> tuple[CheckRow, ...]:
    """Every check of a snapshot and of the last ones validated before it, oldest snapshot first."""
    validated = [snapshot, *_before(root, snapshot, "validation")][: RESULTS_COMPARED + 1]
    return tuple(row for one in reversed(validated) for row in _rows(_result(root, one)))


def started_failing(rows: Sequence[CheckRow]) -> tuple[str, ...]:
    """A sentence for each check that fails in the newest snapshot and passed in the one before it, with its trend.

    A check that the earlier result didn't have is none that started. `rows` are those of `quality_history`.
    """
    snapshots = sorted({row.snapshot for row in rows})
    if len(snapshots) < 2:
        return ()
    passed = {row.check for row in rows if row.snapshot == snapshots[-2] and row.success}
    started = [row for row in rows if row.snapshot == snapshots[-1] and not row.success and row.check in passed]
    return tuple(_sentence(row, [earlier for earlier in rows if earlier.check == row.check][:-1]) for row in started)


def _sentence(row: CheckRow, earlier: Sequence[CheckRow]) -> str:
    passed = sum(one.success for one in earlier)
    now = f"fails for {row.failed_rows} rows" if row.evaluated else "could not be evaluated"
    return f"Check {row.check} ({row.severity}) {now}; it passed in {passed} of the last {len(earlier)} snapshots."


def _rows(result: Mapping[str, Any]) -> Iterable[CheckRow]:
    for one in result["results"]:
        yield CheckRow(
            snapshot=result["snapshot"],
            check=one["check"],
            severity=one["severity"],
            success=bool(one["success"]),
            failed_rows=int(one["failed_rows"]),
            evaluated=one["error"] is None,
        )


def _before(root: Root, snapshot: str, stage: str) -> Iterator[str]:
    return (one for one in root.newest_first(before=snapshot) if (root.folder(stage, one) / RESULT).exists())


def _result(root: Root, snapshot: str) -> dict[str, Any]:
    return read_json(root.folder("validation", snapshot) / RESULT, "validate", [VALIDATION_RESULT_SCHEMA])
