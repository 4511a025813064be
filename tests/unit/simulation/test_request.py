"""What can be simulated, and what is refused before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.simulation.request import SimulationRequest, grid

GRACE = "loadBalancerSheddingGracePeriodMinutes"
PUBLISH = "loadBalancerReportUpdateThresholdPercentage"


def test_without_a_grid_there_is_one_point() -> None:
    request = SimulationRequest(Request(), what_if={GRACE: "5"})
    assert list(request.points()) == [{GRACE: "5"}]


def test_a_grid_is_every_combination_of_its_values() -> None:
    request = SimulationRequest(Request(), grid=grid([f"{GRACE}=1,2", f"{PUBLISH}=5,10"]))
    assert [tuple(point.values()) for point in request.points()] == [("1", "5"), ("1", "10"), ("2", "5"), ("2", "10")]


def test_settings_that_only_time_depends_on_count_here() -> None:
    with pytest.raises(UsageError, match="changes no answer here"):
        Request(what_if={PUBLISH: "5"})
    assert SimulationRequest(Request(), what_if={PUBLISH: "5"}).what_if == {PUBLISH: "5"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cycles": 0}, "--cycles 0 is out of bounds"),
        ({"seeds": 0}, "--seeds 0 is out of bounds"),
        ({"scale": -1.0}, "--load -1 is out of bounds"),
        ({"noise": 9.0}, "--noise 9 is out of bounds"),
        ({"what_if": {"nonsense": "1"}}, "'nonsense' is not a setting"),
        ({"grid": {GRACE: ("1", "soon")}}, "is not usable"),
        ({"grid": {GRACE: ("1",)}, "what_if": {GRACE: "2"}}, "is in --set and in --grid"),
    ],
)
def test_what_can_not_be_simulated_is_refused(given: Mapping[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        SimulationRequest(Request(), **given)


@pytest.mark.parametrize("text", ["key", "key=", "key=1,,2"])
def test_a_grid_is_given_as_a_key_and_values(text: str) -> None:
    with pytest.raises(UsageError, match="is not KEY=A,B,C"):
        grid([text])
