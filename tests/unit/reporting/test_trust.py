"""Checks and coverage."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.planning.advice.coverage import Coverage
from pulsar_advisor.reporting.trust import trust_of
from unit.reporting.skewed import check, recommendation_of, validation_of


def covering(**coverage: Any) -> Recommendation:
    judged = Coverage(**{"judged_ratio": 1.0, **coverage})
    return recommendation_of(()).model_copy(update={"coverage": judged})


def test_failed_checks_are_sorted_by_severity() -> None:
    results = [check(f"t.{severity}", severity, severity=severity, success=False) for severity in ("info", "critical")]
    assert [row.severity for row in trust_of(validation_of(*results), covering()).failed] == ["critical", "info"]


def test_a_check_that_could_not_run_is_neither_failed_nor_passed() -> None:
    trust = trust_of(validation_of(check("t.c", "T", success=False, error="no such column")), covering())
    assert (len(trust.failed), len(trust.not_evaluated), len(trust.passed)) == (0, 1, 0)


def test_excluded_names_are_counted() -> None:
    names = [f"b{number}" for number in range(100)]
    (row,) = trust_of(validation_of(check("t.c", "T", success=False, excluded=names)), covering()).failed
    assert (len(row.excluded), row.excluded_total) == (100, 100)


@pytest.mark.parametrize(
    ("coverage", "sentence"),
    [
        ({}, "All of the load could be judged."),
        (
            {"judged_ratio": 0.9, "excluded_bundles": 3, "sentence": "8.0% of the messages could not be judged."},
            "8.0% of the messages could not be judged. Left out: 3 bundles.",
        ),
        ({"judged_ratio": None}, "The share of the load that could be judged is not known."),
        (
            {"judged_ratio": 0.9, "excluded_brokers": ("b",), "excluded_bundles": 3},
            "10.0% of the load could not be judged. Left out: b; 3 bundles.",
        ),
    ],
)
def test_coverage_says_what_share_could_not_be_judged(coverage: dict[str, Any], sentence: str) -> None:
    found = trust_of(validation_of(), covering(**coverage)).coverage.sentence
    assert found.replace("\u00a0", " ") == sentence


def test_a_share_too_small_to_be_written_is_not_written_as_zero() -> None:
    found = trust_of(validation_of(), covering(judged_ratio=0.9999)).coverage.sentence
    assert found == "Less than 0.1% of the load could not be judged."
    left_out = trust_of(validation_of(), covering(excluded_bundles=1)).coverage.sentence
    assert left_out.replace("\u00a0", " ") == "All of the load could be judged. Left out: 1 bundle."
