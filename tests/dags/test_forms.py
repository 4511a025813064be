"""The forms of the DAGs hold the bounds of the command line."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.bounds import EXPIRES, MAX_UNLOADS, PAUSE_BETWEEN
from pulsar_advisor_airflow.forms import HOUR_S, LIMITS, number_param

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
