"""What Pulsar's own balancer would do with a change of its settings."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pulsar_advisor.model.settings import LoadBalancerSettings, resolve_settings
from pulsar_advisor.simulation.trials import MOST_TRIED, trials
from unit.simulation.clusters import EVERY_LOAD_COUNTS, cluster

IDLE_BROKER = cluster({**{f"b{number}": [40.0, 40.0] for number in range(10)}, "idle": []})
LOWER_BOUNDARY = {"lowerBoundarySheddingEnabled": "true"}


def resolve(what_if: Mapping[str, str]) -> LoadBalancerSettings:
    return resolve_settings("4.0.8", what_if={**EVERY_LOAD_COUNTS, **what_if}).values


def test_a_change_is_simulated_with_the_strategies_it_configures() -> None:
    overload = {
        "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder",
        "loadBalancerBrokerOverloadedThresholdPercentage": "79",
    }
    lower, other = trials([LOWER_BOUNDARY, overload], IDLE_BROKER, resolve)
    assert lower.score is not None and other.score is not None
    assert lower.score.unloads > 0
    assert lower.score.first.usage.maximum == pytest.approx(0.8)
    assert other.score.unloads > 0
    assert lower.document()["score"]["last_usage_standard_deviation_ratio"] < 0.23


def test_each_change_is_tried_once_and_only_the_first_few() -> None:
    minima = [{"loadBalancerBundleUnloadMinThroughputThreshold": str(number)} for number in range(9)]
    found = trials([{}, LOWER_BOUNDARY, LOWER_BOUNDARY, *minima], IDLE_BROKER, resolve)
    assert len(found) == MOST_TRIED
    assert [one.change for one in found[:2]] == [LOWER_BOUNDARY, minima[0]]


def test_a_strategy_that_is_not_modelled_is_said() -> None:
    (found,) = trials([{"loadBalancerLoadSheddingStrategy": "com.example.Own"}], IDLE_BROKER, resolve)
    assert found.score is None
    assert found.error is not None and "there is no shedder 'Own'" in found.error


def test_what_keeps_pulsar_from_shedding_with_a_change_is_known() -> None:
    def off(what_if: Mapping[str, str]) -> LoadBalancerSettings:
        return resolve({"loadBalancerSheddingEnabled": "false", **what_if})

    still_off, on = trials([LOWER_BOUNDARY, {"loadBalancerSheddingEnabled": "true"}], IDLE_BROKER, off)
    assert still_off.document()["switched_off_by"] == ["loadBalancerSheddingEnabled"]
    assert on.switched_off_by == ()
