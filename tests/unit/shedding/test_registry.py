"""What holds for every shedder on offer."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import outcomes_of
from pulsar_advisor.model.configuration.class_names import MODULAR_SHEDDERS
from pulsar_advisor.model.configuration.settings import SETTING_KEYS
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.strategy.entry import Strategy
from pulsar_advisor.shedding.registry import SHEDDERS, load

PAGES = Path(__file__).parents[3] / "docs" / "strategies"
every_shedder = pytest.mark.parametrize("shedder", SHEDDERS, ids=lambda entry: entry.name)


@every_shedder
def test_it_has_a_page_that_names_its_settings(shedder: Strategy) -> None:
    page = (PAGES / f"{shedder.name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {shedder.name}\n")
    own = [key for key in shedder.setting_keys if "ResourceWeight" not in key]
    assert any(key in page for key in own)


@every_shedder
def test_it_reads_settings_that_exist(shedder: Strategy) -> None:
    assert set(shedder.setting_keys) <= SETTING_KEYS


@every_shedder
def test_every_outcome_has_a_sentence_that_takes_two_numbers(shedder: Strategy) -> None:
    for outcome in outcomes_of(shedder.load()):
        assert outcome.sentence.format(left=1.0, right=2.0)


def test_an_unknown_shedder_is_refused() -> None:
    with pytest.raises(UsageError, match="no shedder 'Thresholdy'; the nearest is 'ThresholdShedder'"):
        load("Thresholdy")


def test_pulsars_own_for_the_modular_manager_are_all_on_offer() -> None:
    offered = [entry.java_class for entry in SHEDDERS if "modular" in entry.load_managers]
    assert {name for name in offered if name} == MODULAR_SHEDDERS
