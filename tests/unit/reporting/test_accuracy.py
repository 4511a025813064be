"""The report says how often predictions for a strategy were right, or that it was not measured."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from pulsar_advisor.model.configuration.kinds import LoadManagerKind
from pulsar_advisor.reporting.accuracy import MEASURED, Measured, accuracy

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "decisions.tsv"


def test_what_was_measured_is_said_in_decisions_and_bundles() -> None:
    found = MEASURED["ThresholdShedder", "modular"][0]
    said = accuracy("ThresholdShedder", "modular", "4.0.8")
    assert f"{found.exact} of {found.decisions} recorded decisions of ThresholdShedder were predicted exactly" in said
    assert f"{found.named} of {found.bundles} unloaded bundles" in said
    assert "4.0.8" in said


@pytest.mark.parametrize(
    ("release", "measured"),
    [("2.11.0", "4.0.8"), ("4.2.4", "4.0.8"), ("5.0.0", "4.0.8"), ("5.0.1", "5.0.1"), ("9.9.9", "5.0.1")],
)
def test_figures_are_those_of_the_latest_release_measured_up_to_the_clusters(release: str, measured: str) -> None:
    assert accuracy("AvgShedder", "modular", release).startswith(f"On live {measured} brokers, ")


def test_what_was_not_measured_says_so() -> None:
    assert accuracy("ThresholdShedder", "simple", "4.0.8").startswith("Predictions of ThresholdShedder on the Simple")


def test_a_strategy_that_pulsar_lacks_predicts_nothing() -> None:
    assert accuracy("MinimalMoveShedder", "modular", "4.0.8") == ""


@pytest.mark.parametrize(
    ("shedder", "load_manager", "found"),
    [(*strategy, found) for strategy, measured in MEASURED.items() for found in measured],
)
def test_the_page_has_the_same_figures(shedder: str, load_manager: LoadManagerKind, found: Measured) -> None:
    name = f"{shedder}-{found.release}-{load_manager}"
    with RESULTS.open(encoding="utf-8", newline="") as lines:
        rows = {row["recording"]: row for row in csv.DictReader(lines, delimiter="\t")}
    mine = [rows[f"{name}{run}"] for run in ("", "-quiet", "-unsteady") if f"{name}{run}" in rows]
    assert total(mine, "alone: bundles named") == (found.named, found.bundles)
    assert total(mine, "alone: decisions exact") == (found.exact, found.decisions)


def total(rows: Iterable[Mapping[str, str]], column: str) -> tuple[int, int]:
    """How many were right in all, and how many there were."""
    right, of = zip(*(map(int, row[column].split(" of ")) for row in rows), strict=True)
    return sum(right), sum(of)
