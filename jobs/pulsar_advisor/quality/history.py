"""The history of quality: the results of the checks in a snapshot and in those before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.model.text.some_of import count


@dataclass(frozen=True)
class CheckRow:
    """One check of one snapshot: a row of the history of quality, as `tables.schemas.CHECKS` declares it."""

    snapshot: str
    check: str
    severity: str
    success: bool
    failed_rows: int
    evaluated: bool
    """False where the check could not be evaluated, which is not the same as failed."""


def quality_history(results: Sequence[Validation]) -> tuple[CheckRow, ...]:
    """The checks of these results (newest first, as from `validations_until`), oldest result first."""
    return tuple(row for result in reversed(results) for row in check_rows(result))


def trend(rows: Sequence[CheckRow], check: str | None) -> tuple[str, ...]:
    """The results of one check in the last validated snapshots, one line each, oldest first.

    Without a named check: one line for each check that didn't always pass, with one sign per snapshot. `rows` are those
    of `quality_history`.
    """
    if check is not None:
        return tuple(f"{row.snapshot}  {_outcome(row)}" for row in rows if row.check == check)
    snapshots = sorted({row.snapshot for row in rows})
    failing = sorted({row.check for row in rows if not row.success})
    signs = {(row.check, row.snapshot): _sign(row) for row in rows}
    if not failing:
        return (f"{count(len(snapshots), 'snapshot')}, {snapshots[0]} to {snapshots[-1]}: every check passed",)
    return (
        f"{count(len(snapshots), 'snapshot')}, {snapshots[0]} to {snapshots[-1]}: . passed, F failed, "
        "? could not be evaluated",
        *(f"{''.join(signs.get((one, at), ' ') for at in snapshots)}  {one}" for one in failing),
    )


def _outcome(row: CheckRow) -> str:
    if row.success:
        return "passed"
    return f"failed for {count(row.failed_rows, 'row')} ({row.severity})" if row.evaluated else "could not be evaluated"


def _sign(row: CheckRow) -> str:
    if row.success:
        return "."
    return "F" if row.evaluated else "?"


def started_failing(rows: Sequence[CheckRow]) -> tuple[str, ...]:
    """A sentence with the trend of each check that fails in the newest snapshot but passed in the one before.

    A check that the earlier result didn't have doesn't count. `rows` are those of `quality_history`.
    """
    snapshots = sorted({row.snapshot for row in rows})
    if len(snapshots) < 2:
        return ()
    passed = {row.check for row in rows if row.snapshot == snapshots[-2] and row.success}
    started = [row for row in rows if row.snapshot == snapshots[-1] and not row.success and row.check in passed]
    return tuple(_sentence(row, [earlier for earlier in rows if earlier.check == row.check][:-1]) for row in started)


def _sentence(row: CheckRow, earlier: Sequence[CheckRow]) -> str:
    passed = sum(one.success for one in earlier)
    last = count(len(earlier), "snapshot")
    now = f"fails for {count(row.failed_rows, 'row')}" if row.evaluated else "could not be evaluated"
    return f"Check {row.check} ({row.severity}) {now}; it passed in {passed} of the last {last}."


def check_rows(result: Validation) -> Iterable[CheckRow]:
    """The checks of one result, in its order."""
    for one in result.results:
        yield CheckRow(
            snapshot=result.snapshot,
            check=one.check,
            severity=one.severity,
            success=one.success,
            failed_rows=one.failed_rows,
            evaluated=one.error is None,
        )
