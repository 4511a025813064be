"""What holds for every placement strategy on offer."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import outcomes_of
from pulsar_advisor.model.configuration.class_names import MODULAR_PLACEMENTS
from pulsar_advisor.model.configuration.settings import SETTING_KEYS
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.strategy.entry import Strategy
from pulsar_advisor.placement.registry import PLACEMENTS, load

PAGES = Path(__file__).parents[3] / "docs" / "strategies"
every_placement = pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda entry: entry.name)


@every_placement
def test_it_has_a_page(placement: Strategy) -> None:
    assert (PAGES / f"{placement.name}.md").read_text(encoding="utf-8").startswith(f"# {placement.name}\n")


@every_placement
def test_it_reads_settings_that_exist(placement: Strategy) -> None:
    assert set(placement.setting_keys) <= SETTING_KEYS


@every_placement
def test_every_outcome_has_a_sentence_that_takes_two_numbers(placement: Strategy) -> None:
    for outcome in outcomes_of(placement.load()):
        assert outcome.sentence.format(left=1.0, right=2.0)


def test_an_unknown_placement_is_refused() -> None:
    with pytest.raises(UsageError, match="no placement strategy 'RoundRobin'"):
        load("RoundRobin")


def test_pulsars_own_for_the_modular_manager_are_all_on_offer() -> None:
    offered = [entry.java_class for entry in PLACEMENTS if "modular" in entry.load_managers]
    assert {name for name in offered if name} == MODULAR_PLACEMENTS
