"""Each shedder's fixture, found by its name: an input with the decision expected of it."""

from __future__ import annotations

from typing import Any

import pytest

from conformance import fixture, moves_of, state_of, vectors
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.shedding.cycle import steady_state
from pulsar_advisor.shedding.registry import SHEDDERS, load

CASES = [
    pytest.param(shedder.name, case, id=f"{shedder.name}-{case['id']}")
    for shedder in SHEDDERS
    for case in fixture(shedder.name)
]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_the_decision_is_the_one_expected(name: str, case: dict[str, Any]) -> None:
    state = state_of(case["brokers"], case["bundles"])
    settings = resolve_settings("4.0.8", what_if=case.get("settings", {})).values
    shedder = load(name)
    view = shedder.observe(state, settings, state.captured_at_ms)
    decision = steady_state(shedder, view, settings, shedder.Memory()).decision
    assert moves_of(state, decision) == case["moves"]
    if "nothing" in case:
        row = decision.brokers.decisive()
        broker = state.brokers.ids[int(decision.brokers.index[row])]
        assert f"{broker}: {decision.brokers.explain(row)}" == case["nothing"]


@pytest.mark.parametrize("name", [shedder.name for shedder in SHEDDERS])
def test_every_shedder_has_a_fixture_or_vectors_of_pulsars_own_class(name: str) -> None:
    assert fixture(name) or name in vectors()
