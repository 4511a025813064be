"""What an operator types is the goal of the plan."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_advisor.cli import exit_code, goals
from pulsar_advisor.cli.options import GoalOptions
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.goal import Goal
from pulsar_advisor.planning.request import Request


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests that reach the stage."""
    requests: list[Request] = []

    def answer(request: Request, *_: Any, **__: Any) -> None:
        requests.append(request)

    monkeypatch.setattr(goals, "answer", answer)
    return requests


@pytest.mark.parametrize(
    ("line", "goal"),
    [
        ("drain broker-3", Goal("drain", ("broker-3",))),
        ("drain broker-3 broker-4:8080 --ceiling 70%", Goal("drain", ("broker-3", "broker-4:8080"), None, 0.7)),
        ("relieve broker-3 --to 60%", Goal("relieve", ("broker-3",), 0.6)),
        ("relieve broker-3 --to 60 --ceiling 80", Goal("relieve", ("broker-3",), 0.6, 0.8)),
        ("fill broker-11", Goal("fill", ("broker-11",))),
        ("conform", Goal("conform")),
    ],
)
def test_a_verb_is_a_goal(line: str, goal: Goal, asked: list[Request]) -> None:
    assert exit_code([*line.split(), "--max-unloads", "5", "--as", "olive"]) == 0
    [request] = asked
    assert (request.goal, request.limits.max_unloads, request.proposer) == (goal, 5, "olive")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("drain", "at least one broker"),
        ("relieve broker-3 --to much", "'much' is not a percentage"),
        ("relieve broker-3 --to 120%", "--to 120% is out of bounds"),
    ],
)
def test_what_is_no_goal_is_refused(
    line: str, message: str, asked: list[Request], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(line.split()) == UsageError.exit_code
    assert message in capsys.readouterr().err
    assert asked == []


def test_a_form_fills_the_options_of_a_job() -> None:
    assert GoalOptions().chosen() is None
    filled = GoalOptions(goal="relieve", brokers="broker-1:8080", to="60", ceiling="")
    assert filled.chosen() == Goal("relieve", ("broker-1:8080",), 0.6)
    assert GoalOptions(goal="drain", brokers="b1, b2").chosen() == Goal("drain", ("b1", "b2"))
