"""Every way we know in which figures lie, and the check that names it; what no check can see is in docs/blind-spots.md.

The corruptions of a round are judged together. Those of the real Modular capture are slow; the others run in full only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.documents.validation import CheckResult
from pulsar_advisor.quality.checks import checks
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.report import drift_since_the_last_good_snapshot
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.root import Root, Snapshot
from spark.mutations import (
    CORRUPTIONS,
    FROZEN,
    RECORDED,
    ROUNDS,
    SYNTHETIC,
    UNSEEN,
    Capture,
    Corruption,
    clean_capture,
    corrupted,
)

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Judged:
    """A round after validation: what each corruption must be named by, and the checks that fail."""

    snapshot: Snapshot
    victims: Mapping[str, str]
    failing: Mapping[str, CheckResult]


Judge = Callable[[str], Judged]


@pytest.fixture(scope="module")
def judge(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Judges a round, each only once; the frozen one after the capture it repeats."""

    def validated(root: Root, capture: Capture) -> tuple[Snapshot, dict[str, CheckResult]]:
        snapshot = capture.raw.write(root)
        normalize(spark, snapshot)
        for table, damage in capture.table_damages:
            damage(Path(str(snapshot.folder(f"tables/{table}"))))
        results = validate(spark, snapshot).results
        return snapshot, {one.check: one for one in results if not one.success}

    @cache
    def round_(name: str) -> Judged:
        root = Root(str(tmp_path_factory.mktemp("mutations")), "test")
        if name == FROZEN:
            validated(root, clean_capture(RECORDED))
        capture, victims = corrupted(name)
        snapshot, failing = validated(root, capture)
        return Judged(snapshot, victims, failing)

    return round_


def _mark(round_: str) -> pytest.MarkDecorator:
    return pytest.mark.slow if round_ == RECORDED else pytest.mark.full


@pytest.mark.parametrize(
    "corruption",
    [pytest.param(one, id=one.name, marks=_mark(one.round)) for one in CORRUPTIONS if one.round != UNSEEN],
)
def test_a_corruption_is_caught(corruption: Corruption, judge: Judge) -> None:
    judged = judge(corruption.round)
    victim = judged.victims[corruption.name]
    missed = [
        check
        for check in corruption.caught_by
        if check not in judged.failing or not _names(judged.failing[check], victim)
    ]
    assert missed == [], f"{victim}; failing: {sorted(judged.failing)}"


@pytest.mark.parametrize("round_", [pytest.param(one, marks=_mark(one)) for one in ROUNDS])
def test_no_check_fails_without_a_corruption(round_: str, judge: Judge) -> None:
    explained = {check for one in CORRUPTIONS if one.round == round_ for check in (*one.caught_by, *one.also)}
    assert judge(round_).failing.keys() == explained


@pytest.mark.full
@pytest.mark.parametrize("name", ROUNDS)
def test_every_check_could_be_evaluated(name: str, judge: Judge) -> None:
    assert {check: one.error for check, one in judge(name).failing.items() if one.error} == {}


@pytest.mark.full
def test_the_report_names_checks_that_started_to_fail_since_the_last_good_snapshot(judge: Judge) -> None:
    judged = judge(FROZEN)
    sentences = drift_since_the_last_good_snapshot(judged.snapshot)
    assert sentences is not None
    assert any(sentence.startswith("Check brokers.figures_moved (warning) fails for ") for sentence in sentences)
    assert all(sentence.startswith("Check ") for sentence in sentences), "nothing but the figures' age has changed"


@pytest.mark.full
def test_the_synthetic_capture_raises_nothing_before_it_is_corrupted(spark: SparkSession, tmp_path: Path) -> None:
    snapshot = clean_capture(SYNTHETIC).raw.write(Root(str(tmp_path), "test"))
    normalize(spark, snapshot)
    assert [one.check for one in validate(spark, snapshot).results if not one.success] == []


def test_every_check_catches_a_corruption() -> None:
    assert len({(one.round, one.name) for one in CORRUPTIONS}) == len(CORRUPTIONS)
    assert {check for one in CORRUPTIONS for check in one.caught_by} == {check.name for check in checks()}


def _names(result: CheckResult, victim: str) -> bool:
    """Whether a failing check says that it failed there; one about a table as a whole says no place."""
    said = " ".join(
        [
            *result.excluded,
            *(result.concerned or ()),
            *(str(value) for row in result.examples for value in row.values()),
        ]
    )
    return victim in said if victim else said == ""
