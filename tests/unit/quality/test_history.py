"""How checks went from snapshot to snapshot, oldest first."""

import documents
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.quality.history import quality_history, started_failing, trend

FIRST, SECOND, THIRD = (f"2026112{day}T080000Z" for day in (1, 2, 3))


def result(snapshot: str, **checks: int | str) -> Validation:
    """A validation result: check -> rows that fail, or why it could not be evaluated."""
    return documents.validation(*documents.answered(checks), snapshot=snapshot)


def test_a_check_that_starts_to_fail_is_named_with_its_trend() -> None:
    first = result(FIRST, leader=0, unique=0, some=2)
    second = result(SECOND, leader=0, unique=0, some=2)
    third = result(THIRD, leader=3, unique=0, some=2)
    assert started_failing(quality_history([third, second, first])) == (
        "Check leader (warning) fails for 3 rows; it passed in 2 of the last 2 snapshots.",
    )


def test_a_check_that_can_no_longer_be_evaluated_has_a_sign_of_its_own() -> None:
    second = result(SECOND, leader=0)
    third = result(THIRD, leader="no such column")
    assert started_failing(quality_history([third, second])) == (
        "Check leader (warning) could not be evaluated; it passed in 1 of the last 1 snapshot.",
    )


def test_a_new_check_has_not_started_to_fail() -> None:
    second = result(SECOND, leader=0)
    third = result(THIRD, leader=0, unique=1)
    assert started_failing(quality_history([third, second])) == ()


def test_the_history_is_a_row_for_each_check_and_snapshot() -> None:
    first = result(FIRST, leader=0)
    second = result(SECOND, leader=5)
    rows = [(row.snapshot, row.check, row.failed_rows) for row in quality_history([second, first])]
    assert rows == [(FIRST, "leader", 0), (SECOND, "leader", 5)]


def test_the_trend_of_one_check_is_a_line_for_each_snapshot() -> None:
    first = result(FIRST, leader=0)
    second = result(SECOND, leader=5)
    third = result(THIRD, leader="no such column")
    assert trend(quality_history([third, second, first]), "leader") == (
        f"{FIRST}  passed",
        f"{SECOND}  failed for 5 rows (warning)",
        f"{THIRD}  could not be evaluated",
    )


def test_the_trend_of_all_names_the_checks_that_did_not_always_pass() -> None:
    first = result(FIRST, leader=0, unique=0)
    second = result(SECOND, leader=5, unique=0, steady="no such column")
    third = result(THIRD, leader=0, unique=0, steady=0)
    head, *lines = trend(quality_history([third, second, first]), None)
    assert head.startswith(f"3 snapshots, {FIRST} to {THIRD}: ")
    assert lines == [".F.  leader", " ?.  steady"]


def test_the_trend_of_all_says_that_every_check_passed() -> None:
    history = quality_history([result(SECOND, leader=0), result(FIRST, leader=0)])
    assert trend(history, None) == (f"2 snapshots, {FIRST} to {SECOND}: every check passed",)
