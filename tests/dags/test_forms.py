"""The forms of the DAGs hold the bounds of the command line."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from jinja2.nativetypes import NativeEnvironment

from pulsar_advisor.model.bounds import EXPIRES, MAX_UNLOADS, PAUSE_BETWEEN
from pulsar_advisor_airflow.forms import (
    FORM_MACROS,
    GOAL_ARGUMENTS,
    HOUR_S,
    LIMIT_ARGUMENTS,
    LIMITS,
    REBALANCE,
    ROLL,
    ROLL_ARGUMENTS,
    filled_in,
    number_param,
    require_no_contradiction,
)

pytestmark = pytest.mark.airflow


def test_a_number_has_the_bounds_of_the_command_line() -> None:
    schema = LIMITS["max_unloads"].schema
    assert (schema["type"], schema["minimum"], schema["maximum"]) == (
        "integer",
        MAX_UNLOADS.least,
        MAX_UNLOADS.greatest,
    )


def test_a_duration_may_have_decimals_and_is_bounded_in_its_unit() -> None:
    schema = number_param(4, EXPIRES, "Approval valid for (hours)", "Approval", unit_s=HOUR_S).schema
    assert (schema["type"], schema["minimum"] * 3600, schema["maximum"]) == ("number", EXPIRES.least, 72)


@pytest.mark.parametrize("value", [-1, 3601])
def test_what_the_command_line_refuses_the_form_refuses(value: int) -> None:
    with pytest.raises(ValueError, match=r"minimum|maximum"):
        number_param(value, PAUSE_BETWEEN, "Pause", "Limits").resolve()


@pytest.mark.parametrize("name", ["", " ", "broker-1,broker-2"])
def test_a_line_that_names_no_single_broker_is_refused_before_a_capture(name: str) -> None:
    with pytest.raises(ValueError, match="does not match"):
        REBALANCE["goal_brokers"].resolve([name])


def test_a_whole_number_with_a_point_reaches_the_job_as_one() -> None:
    """JSON's 10.0 is an integer to a form's schema, and no whole number to a command line."""
    form = {name: field.value for name, field in REBALANCE.items()}
    numbers = {"max_unloads": 10.0, "max_splits": 2.0, "goal_to_percent": 60.0, "goal_ceiling_percent": 70.0}
    words = _rendered((*LIMIT_ARGUMENTS, *GOAL_ARGUMENTS), form | numbers)
    assert {"--max-unloads=10", "--max-splits=2", "--to=60", "--ceiling=70"} <= set(words)


def test_the_bundles_of_a_goal_reach_the_job() -> None:
    form = {name: field.value for name, field in REBALANCE.items()} | {"goal_bundles": ["t/n/0x0", "t/n/0x1"]}
    assert _rendered(GOAL_ARGUMENTS, form) == ["--bundles=t/n/0x0,t/n/0x1"]


def test_the_fields_of_a_roll_reach_the_job() -> None:
    empty = {name: field.value for name, field in ROLL.items()} | {"brokers": None}
    filled = {"brokers": ["b", "a"], "spare": ["c"], "ceiling_percent": 70}
    assert _rendered(ROLL_ARGUMENTS, empty | filled) == ["--brokers=b,a", "--spare=c", "--ceiling=70"]
    assert _rendered(ROLL_ARGUMENTS, empty) == []


def _rendered(arguments: tuple[str, ...], form: dict[str, Any]) -> list[str]:
    environment = NativeEnvironment()
    environment.globals |= FORM_MACROS
    return [word for argument in arguments for word in environment.from_string(argument).render(params=form)]


@pytest.mark.parametrize("names", [["olive "], ["olive", ""]])
def test_an_approver_that_nobody_is_called_is_refused(names: list[str]) -> None:
    """Airflow's form keeps spaces and empty lines; no answer would be accepted."""
    with pytest.raises(ValueError, match="does not match"):
        REBALANCE["approvers"].resolve(names)


@pytest.mark.parametrize(
    ("form", "filled", "said"),
    [
        (REBALANCE, {"undo": True}, "Undo needs the digest"),
        (REBALANCE, {"digest": "abcdef", "max_unloads": 3, "splits": False}, "'Recommend splits too', 'Maximum number"),
        (
            REBALANCE,
            {"goal_ceiling_percent": 70},
            "no goal is chosen, so leave these fields as they were: 'Maximum usage of dest",
        ),
        (REBALANCE, {"goal": "fill", "goal_onto": ["broker-2"]}, "'Only onto these brokers'"),
        (REBALANCE, {"goal": "conform", "goal_onto": ["broker-2"]}, "'Only onto these brokers'"),
        (REBALANCE, {"goal": "balance", "goal_ceiling_percent": 70}, "balance takes none, .*'Maximum usage of dest"),
        (REBALANCE, {"what_if": ["loadBalancerX=1"]}, "'loadBalancerX' is not a setting"),
        (REBALANCE, {"goal": "conform", "shedder": "OverloadShedder"}, "conform uses no strategy, .*'Shedder'"),
        (REBALANCE, {"goal": "split", "max_splits": 3}, "'Maximum number of splits'"),
        (REBALANCE, {"goal": "move", "goal_bundles": ["t/n/0x0"]}, "move is onto exactly one broker; named: none"),
        (REBALANCE, {"goal": "fill", "goal_brokers": ["a"], "goal_bundles": ["t/n/0x0"]}, "fill is about no bundle"),
        (REBALANCE, {"goal": "drain"}, "drain is about at least one broker"),
        (REBALANCE, {"goal": "drain", "goal_brokers": ["a"], "goal_to_percent": 60}, "drain has no target usage"),
        (ROLL, {"digest": "abcdef", "brokers": ["broker-1"]}, "'Brokers to restart, in this order'"),
    ],
)
def test_no_field_that_would_be_ignored_is_accepted(form: Any, filled: dict[str, Any], said: str) -> None:
    untouched = {name: field.value for name, field in form.items()}
    with pytest.raises(AirflowFailException, match=said):
        require_no_contradiction({**untouched, **filled})


@pytest.mark.parametrize(
    ("given", "used", "said"),
    [
        ({"airflow/task_span_detail_level": 1, "guard": True}, {"guard": True}, None),
        ({"guards": True}, {"guards": True}, "the form has no field guards: its fields are digest, "),
        ({"guard": True}, {}, "this Airflow ignores the form"),
    ],
)
def test_a_run_is_given_what_the_form_has_and_airflow_uses(
    given: dict[str, Any], used: dict[str, Any], said: str | None
) -> None:
    untouched = {name: field.value for name, field in REBALANCE.items()}
    context: Any = {"params": {**untouched, **used}, "dag_run": SimpleNamespace(conf=given)}
    with nullcontext() if said is None else pytest.raises(AirflowFailException, match=said):
        assert filled_in(REBALANCE, context)["guard"] is True


@pytest.mark.parametrize(
    ("form", "filled"),
    [
        (REBALANCE, {"goal_onto": None, "what_if": None, "max_unloads": 3}),
        (REBALANCE, {"digest": "abcdef", "undo": True, "goal_brokers": None, "in_flight": 4}),
        (REBALANCE, {"goal": "drain", "goal_brokers": ["broker-1"], "goal_onto": ["broker-2"]}),
        (REBALANCE, {"goal": "relieve", "goal_brokers": ["broker-1"], "goal_to_percent": 60}),
        (
            REBALANCE,
            {"goal": "move", "goal_bundles": ["t/n/0x0"], "goal_onto": ["broker-1"], "goal_ceiling_percent": 70},
        ),
        (ROLL, {"digest": "abcdef", "brokers": None}),
        (ROLL, {"brokers": ["broker-1"]}),
    ],
)
def test_a_form_without_ignored_fields_is_accepted(form: Any, filled: dict[str, Any]) -> None:
    require_no_contradiction({name: field.value for name, field in form.items()} | filled)
