"""The report says how often predictions for a strategy were right, or that it was not measured."""

from pathlib import Path

import pytest

from pulsar_advisor.model.kinds import LoadManagerKind
from pulsar_advisor.reporting.accuracy import MEASURED, accuracy

PAGE = Path(__file__).parents[3] / "docs" / "accuracy.md"


def test_what_was_measured_is_said_in_decisions_and_bundles() -> None:
    found = MEASURED["ThresholdShedder", "modular"]
    said = accuracy("ThresholdShedder", "modular")
    assert f"{found.exact} of {found.decisions} were predicted exactly" in said
    assert f"{found.named} of {found.bundles} unloaded bundles" in said
    assert "4.0.8" in said


def test_what_was_not_measured_says_so() -> None:
    assert accuracy("ThresholdShedder", "simple").startswith("Predictions of ThresholdShedder on the Simple manager")


def test_a_strategy_that_pulsar_lacks_predicts_nothing() -> None:
    assert accuracy("MinimalMoveShedder", "modular") == ""


@pytest.mark.parametrize(("shedder", "load_manager"), MEASURED)
def test_the_page_has_the_same_figures(shedder: str, load_manager: LoadManagerKind) -> None:
    found = MEASURED[shedder, load_manager]
    name = f"| {shedder} {found.release} {load_manager}"
    of_recordings = PAGE.read_text(encoding="utf-8").partition("\n## ")[0].splitlines()
    mine = tuple(f"{name}{run} |" for run in ("", ", `-quiet`", ", `-unsteady`"))
    rows = [figures(line) for line in of_recordings if line.startswith(mine)]
    assert [sum(column) for column in zip(*rows, strict=True)] == [
        *(found.named, found.bundles),
        *(found.exact, found.decisions),
    ]


def figures(row: str) -> list[int]:
    """Of bundles and decisions predicted from one snapshot: how many were right, and how many there were."""
    return [int(number) for cell in row.split("|")[2:4] for number in cell.split(" of ")]
