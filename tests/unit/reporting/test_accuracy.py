"""The report says how often predictions for a strategy were right, or that it was not measured."""

from pulsar_advisor.reporting.accuracy import MEASURED, accuracy


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
