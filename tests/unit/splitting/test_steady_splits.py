from __future__ import annotations

import pytest

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.splitting.steady_splits import steady_splits
from states import WHOLE, BrokerRow, BundleRow, cluster_state

SETTINGS = resolve_settings("4.0.8").values


def state(load_manager, rate):
    return cluster_state(
        [BrokerRow("a:8080"), BrokerRow("b:8080")],
        [BundleRow("t/n", WHOLE, "a:8080", (rate, 0.0, 0.0, 0.0), 3)],
        load_manager=load_manager,
    )


@pytest.mark.parametrize(("load_manager", "expected"), [("modular", 1), ("simple", 1), ("extensible", 4)])
def test_says_in_which_cycle_the_manager_acts(load_manager, expected):
    steady = steady_splits(state(load_manager, 40_000.0), SETTINGS)
    assert (steady.acts_in_cycle, len(steady.decision.splits)) == (expected, 1)


@pytest.mark.parametrize("load_manager", ["modular", "simple", "extensible"])
def test_says_so_when_no_cycle_acts(load_manager):
    steady = steady_splits(state(load_manager, 4.0), SETTINGS)
    assert (steady.acts_in_cycle, steady.decision.splits) == (None, ())


def test_a_threshold_of_more_hits_than_cycles_are_tried_says_how_many_there_were():
    patient = resolve_settings("4.0.8", {"loadBalancerNamespaceBundleSplitConditionHitCountThreshold": "20"}).values
    steady = steady_splits(state("extensible", 40_000.0), patient)
    assert steady.acts_in_cycle is None
    assert steady.decision.bundles.explain(0) == "too big 10 times in a row; split only after more than 20"
