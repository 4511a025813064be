"""What an operator types is the goal of the plan."""

from __future__ import annotations

import shlex
from inspect import signature
from pathlib import Path

import pytest

from pulsar_advisor.cli import app, exit_code, goals
from pulsar_advisor.cli.options import GoalOptions
from pulsar_advisor.cli.rendering import restart_lines, scale_lines
from pulsar_advisor.cli.stages import Making
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.planning.kinds.registry import KINDS, Kind
from pulsar_advisor.planning.kinds.restarting import Restart
from pulsar_advisor.planning.questions.restart_order import RestartOrder
from pulsar_advisor.planning.questions.scale import Machine, Scale, Size
from pulsar_advisor.planning.requests.request import Request

PAGE = Path(__file__).parents[3] / "docs" / "plan-kinds.md"


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_a_plan_kind_has_a_verb(kind: str) -> None:
    assert kind in set(app)


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_a_plan_kind_has_a_section_of_the_page(kind: str) -> None:
    assert f"\n## {kind}\n" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name != ROLL], ids=lambda kind: kind.name)
def test_a_verb_takes_the_options_of_its_kind(kind: Kind) -> None:
    parameters = signature(getattr(goals, kind.name)).parameters
    assert parameters.keys() & {"to", "onto", "ceiling"} == {*kind.options}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests that reach the stage."""
    requests: list[Request] = []

    monkeypatch.setattr(Making, "answer", lambda _, request: requests.append(request))
    return requests


@pytest.mark.parametrize(
    ("line", "goal"),
    [
        ("drain broker-3", Goal("drain", ("broker-3",))),
        ("drain broker-3 broker-4:8080 --ceiling 70%", Goal("drain", ("broker-3", "broker-4:8080"), None, 0.7)),
        ("relieve broker-3 --to 60%", Goal("relieve", ("broker-3",), 0.6)),
        ("relieve broker-3 --to 60 --ceiling 80", Goal("relieve", ("broker-3",), 0.6, 0.8)),
        ("fill broker-11 broker-12", Goal("fill", ("broker-11", "broker-12"))),
        ("balance --to 55%", Goal("balance", (), 0.55)),
        ("split --to 55%", Goal("split", (), 0.55)),
        ("conform", Goal("conform")),
        ("move t/n/0x0 --onto broker-1", Goal("move", (), None, None, ("broker-1",), ("t/n/0x0",))),
        ("drain broker-3 --onto broker-1 --onto broker-2", Goal("drain", ("broker-3",), onto=("broker-1", "broker-2"))),
    ],
)
def test_a_verb_is_a_goal(line: str, goal: Goal, asked: list[Request]) -> None:
    assert exit_code([*line.split(), "--max-unloads", "5", "--as", "olive"]) == 0
    [request] = asked
    assert (request.goal, request.limits.max_unloads, request.proposer) == (goal, 5, "olive")
    assert exit_code(shlex.split(goal.command)) == 0  # as a sentence names it
    assert asked[-1].goal == goal


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
    assert GoalOptions(goal="move", onto="b", bundles="x, y").chosen() == Goal("move", onto=("b",), bundles=("x", "y"))
    assert GoalOptions(goal="drain", brokers="b1", onto="b2,b3").chosen() == Goal("drain", ("b1",), onto=("b2", "b3"))


def test_each_restart_is_a_command_and_the_first_broker_may_go_anywhere() -> None:
    first = Restart("b", 2, 9, {"a": 2}, will_move_again=2, stay=0, without_room=0, highest_usage_ratio=0.5)
    second = Restart("a", 4, 20, {"b": 4}, will_move_again=0, stay=0, without_room=0, highest_usage_ratio=0.4)
    assert list(restart_lines(RestartOrder("Balance first: b", (first, second), 6, 6))) == [
        "Balance first: b",
        "  1. pulsar-advisor drain b",
        "     2 bundles, 9 clients, 2 of them again later; the busiest other broker is then at 50.0%",
        "  2. pulsar-advisor drain a --onto b",
        "     4 bundles, 20 clients; the busiest other broker is then at 40.0%",
        "6 moves in all; no order needs fewer than 6",
    ]


def test_a_command_runs_nothing_that_the_cluster_put_into_a_brokers_name() -> None:
    first = Restart("b$(reboot):1", 2, 9, {"a": 2}, will_move_again=0, stay=0, without_room=0, highest_usage_ratio=0.5)
    assert next(restart_lines(RestartOrder(None, (first,), 2, 2))) == "  1. pulsar-advisor drain 'b$(reboot):1'"


def test_no_bound_is_claimed_where_a_bundle_stays() -> None:
    first = Restart("a", 4, 20, {"b": 4}, will_move_again=0, stay=1, without_room=1, highest_usage_ratio=0.4)
    *_, turn, total = restart_lines(RestartOrder(None, (first,), 4, 5))
    assert turn.strip() == "4 bundles, 20 clients, 1 stays; the busiest other broker is then at 40.0%"
    assert total == "4 moves in all"


def test_nothing_is_said_of_other_brokers_where_there_are_none() -> None:
    only = Restart("a", 0, 0, {}, will_move_again=0, stay=12, without_room=0, highest_usage_ratio=0.0)
    *_, turn, _ = restart_lines(RestartOrder(None, (only,), 0, 0))
    assert turn.strip() == "0 bundles, 0 clients, 12 stay"


def test_each_command_keeps_to_the_ceiling_that_was_given() -> None:
    first = Restart("b", 2, 9, {"a": 2}, will_move_again=2, stay=0, without_room=0, highest_usage_ratio=0.5)
    second = Restart("a", 4, 20, {"b": 4}, will_move_again=0, stay=0, without_room=0, highest_usage_ratio=0.4)
    lines = list(restart_lines(RestartOrder(None, (first, second), 6, 6), 0.58))
    assert [line for line in lines if "drain" in line] == [
        "  1. pulsar-advisor drain b --ceiling 58%",
        "  2. pulsar-advisor drain a --onto b --ceiling 58%",
    ]


def test_sizes_are_shown_beside_the_one_there_is() -> None:
    sizes = (
        Size("", 0, 2, 0.55, 0.6, 0.9),
        Size("4 cores", -1, 1, 1.1, 1.2, 1.2),
        Size("4 cores", 1, 3, 0.4, 0.4, 0.4),
    )
    machines = (Machine("4 cores", 2, 3, 3),)
    found = Scale(2, 0.5, "under", "low", "2 aren't enough.", machines, sizes, 0.5, "t/n/0x0_0x1", 0.3, ("b",))
    assert list(scale_lines(found)) == [
        "2 aren't enough. Verdict: under, confidence: low.",
        "usage of the busiest broker, if the load were divided evenly:",
        "      2 brokers: 55.0% to 90.0%    now",
        "       1 broker: 110.0% to 120.0%",
        "      3 brokers: 40.0%",
        "up to 50% of the CPU usage may not follow messages",
        "the largest bundle, t/n/0x0_0x1, needs up to 30.0% of a broker alone",
        "if one of these fails, the others have no room for its bundles: b",
    ]


def test_a_bundle_larger_than_the_target_is_said_to_need_more_than_brokers() -> None:
    large = Scale(1, 0.5, "over", "high", "One could go.", (Machine("4 cores", 1, 1, 1),), (), 0.0, "t/n/0x0", 0.6, ())
    assert list(scale_lines(large))[1] == (
        "the largest bundle, t/n/0x0, needs up to 60.0% of a broker alone, above 50%, which no number of brokers "
        "mends: split it, or give its topics more partitions"
    )


def test_no_largest_bundle_is_named_where_none_has_load() -> None:
    idle = Scale(1, 0.5, "right", "high", "1 is enough.", (Machine("4 cores", 1, 1, 1),), (), 0.0, "", 0.0, ())
    assert list(scale_lines(idle)) == [
        "1 is enough. Verdict: right, confidence: high.",
        "whichever broker fails, the others have room for its bundles",
    ]
