"""Every way we know in which figures lie, and the check that names it; what no check can see is in docs/blind-spots.md.

The corruptions of a round are judged together. Those of a real capture are the sample; the others run in full only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pulsar_advisor.quality.checks import checks
from pulsar_advisor.quality.validate import validate
from pulsar_advisor.stages.report import drift_since_the_last_good_snapshot
from pulsar_advisor.storage import Root
from pulsar_advisor.tables.normalize import normalize
from spark.mutations import (
    CORRUPTIONS,
    FROZEN,
    RECORDED,
    ROUNDS,
    SYNTHETIC,
    Capture,
    Corruption,
    clean_capture,
    corrupted,
)

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Judged:
    """A round after validation: what each corruption must be named by, and the checks that fail."""

    root: Root
    snapshot: str
    victims: Mapping[str, str]
    failing: Mapping[str, dict[str, Any]]


Judge = Callable[[str], Judged]


@pytest.fixture(scope="module")
def judge(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Judges a round, each only once; the frozen one after the capture it repeats."""

    def validated(root: Root, capture: Capture) -> tuple[str, dict[str, dict[str, Any]]]:
        snapshot = capture.raw.write(root)
        normalize(spark, root, snapshot)
        for table, damage in capture.table_damages:
            damage(Path(str(root.folder(f"tables/{table}", snapshot))))
        results = validate(spark, root, snapshot)["results"]
        return snapshot, {one["check"]: one for one in results if not one["success"]}

    @cache
    def round_(name: str) -> Judged:
        root = Root(str(tmp_path_factory.mktemp("mutations")), "test")
        if name == FROZEN:
            validated(root, clean_capture(RECORDED))
        capture, victims = corrupted(name)
        snapshot, failing = validated(root, capture)
        return Judged(root, snapshot, victims, failing)

    return round_


@pytest.mark.parametrize(
    "corruption",
    [pytest.param(one, id=one.name, marks=[] if one.round == RECORDED else [pytest.mark.full]) for one in CORRUPTIONS],
)
def test_a_corruption_is_caught(corruption: Corruption, judge: Judge) -> None:
    judged = judge(corruption.round)
    victim = judged.victims[corruption.name]
    missed = [
        check
        for check in corruption.caught_by
        if check not in judged.failing or victim not in _named(judged.failing[check])
    ]
    assert missed == [], f"{victim}; failing: {sorted(judged.failing)}"


@pytest.mark.full
@pytest.mark.parametrize("name", ROUNDS)
def test_every_check_could_be_evaluated(name: str, judge: Judge) -> None:
    assert {check: one["error"] for check, one in judge(name).failing.items() if one["error"]} == {}


@pytest.mark.full
def test_the_report_names_checks_that_started_to_fail_since_the_last_good_snapshot(judge: Judge) -> None:
    judged = judge(FROZEN)
    sentences = drift_since_the_last_good_snapshot(judged.root, judged.snapshot)
    assert sentences is not None
    assert any(sentence.startswith("Check brokers.figures_moved (warning) fails for ") for sentence in sentences)
    assert all(sentence.startswith("Check ") for sentence in sentences), "nothing but the figures' age has changed"


@pytest.mark.full
def test_the_synthetic_capture_raises_nothing_before_it_is_corrupted(spark: SparkSession, tmp_path: Path) -> None:
    root = Root(str(tmp_path), "test")
    snapshot = clean_capture(SYNTHETIC).raw.write(root)
    normalize(spark, root, snapshot)
    assert [one["check"] for one in validate(spark, root, snapshot)["results"] if not one["success"]] == []


def test_every_check_catches_a_corruption() -> None:
    assert len({one.name for one in CORRUPTIONS}) == len(CORRUPTIONS)
    assert {check for one in CORRUPTIONS for check in one.caught_by} == {check.name for check in checks()}


def _named(result: dict[str, Any]) -> str:
    """Everything a failing check says about where it failed."""
    return " ".join([*result["excluded"], *(str(value) for row in result["examples"] for value in row.values())])
