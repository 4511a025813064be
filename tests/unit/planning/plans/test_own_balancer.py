"""What Pulsar itself would do, given its switches."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.planning.plans.own_balancer import (
    shedding_switched_off_by,
    splitting_switched_off_by,
    would_pulsar_act,
)

THRESHOLD = "ThresholdShedder"


def says(shedder: str = THRESHOLD, *, moves: bool = True, splits: bool = False, **what_if: str) -> str:
    return would_pulsar_act(resolve_settings("4.0.8", what_if=what_if), "modular", shedder, moves, splits)


@pytest.mark.parametrize(
    ("switch", "sheds_not", "splits_not"),
    [
        ("loadBalancerEnabled", True, True),
        ("loadBalancerSheddingEnabled", True, False),
        ("loadBalancerAutoBundleSplitEnabled", False, True),
    ],
)
def test_each_switch_keeps_pulsar_from_its_part(switch: str, sheds_not: bool, splits_not: bool) -> None:
    values = resolve_settings("4.0.8", what_if={switch: "false"}).values
    assert shedding_switched_off_by(values) == ((switch,) if sheds_not else ())
    assert splitting_switched_off_by(values) == ((switch,) if splits_not else ())


def test_what_keeps_it_from_acting_is_named_once() -> None:
    assert says(splits=True, loadBalancerEnabled="false", loadBalancerSheddingEnabled="false") == (
        "Pulsar itself would not act: loadBalancerEnabled=false, loadBalancerSheddingEnabled=false"
    )


def test_a_switch_for_what_is_not_planned_says_nothing() -> None:
    assert says(loadBalancerAutoBundleSplitEnabled="false") == "Pulsar itself would act the same way"
    assert says(moves=False, loadBalancerSheddingEnabled="false") == "Pulsar itself would do nothing either"


def test_another_shedder_than_its_own_is_said() -> None:
    assert says("AvgShedder") == "Pulsar itself is configured with ThresholdShedder, not AvgShedder"
    assert says("drain") == "Pulsar itself would not act: none of its strategies has this goal"
