"""What is asked for is checked at once, and is the same on the command line, on executors and in the plans."""

from __future__ import annotations

import json

import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.proposals.configured import Configured
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.requests.request import CONFIGURED, Request, what_if
from pulsar_advisor.shedding.registry import SHEDDERS


def test_all_are_every_strategy_on_offer() -> None:
    assert Request().shedders == tuple(entry.name for entry in SHEDDERS)
    assert Request().placements == tuple(entry.name for entry in PLACEMENTS)


def test_its_part_about_one_shedder_keeps_the_rest() -> None:
    request = Request(placement="RoundRobinBrokerSelector", seed=7)
    assert request.of("AvgShedder") == Request(shedder="AvgShedder", placement="RoundRobinBrokerSelector", seed=7)


def test_an_executor_gets_the_same_request() -> None:
    request = Request(what_if={"loadBalancerEnabled": "false"}, limits=Limits(max_unloads=3), history=2)
    assert Request.from_document(json.loads(json.dumps(request.document()))) == request


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shedder": "Threshold"}, "there is no shedder 'Threshold'"),
        ({"placement": "RoundRobin"}, "there is no placement strategy 'RoundRobin'"),
        ({"what_if": {"loadBalancerEnabld": "true"}}, "the nearest is 'loadBalancerEnabled'"),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_is_read(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Request(**wrong)


def test_the_clusters_own_strategies_are_asked_for_by_name_if_they_are_modelled() -> None:
    request = Request(shedder=CONFIGURED, placement=CONFIGURED)
    own = Configured("ThresholdShedder", "LeastLongTermMessageRate")
    assert request.resolved(own) == Request(*own)
    with pytest.raises(UsageError, match="the cluster's own shedder, 'OwnShedder', is not modelled: name another, or"):
        request.resolved(own._replace(shedder="OwnShedder"))


def test_settings_are_pairs() -> None:
    assert what_if(["loadBalancerEnabled=false", " maxUnloadPercentage =0.5"]) == {
        "loadBalancerEnabled": "false",
        "maxUnloadPercentage": "0.5",
    }
    with pytest.raises(UsageError, match="'loadBalancerEnabled' is not KEY=VALUE"):
        what_if(["loadBalancerEnabled"])
