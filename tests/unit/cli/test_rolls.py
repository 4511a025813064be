"""What an operator types and reads of a rolling restart."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsar_advisor.cli import exit_code
from pulsar_advisor.cli.places import CLUSTER_VARIABLE, ROOT_VARIABLE
from pulsar_advisor.cli.rendering import roll_lines
from pulsar_advisor.cli.stages import Making
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.roll.conduct import Roll
from pulsar_advisor.execution.run.guard.settings import GUARDED
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.planning.kinds.restarting import Restart
from pulsar_advisor.planning.questions.roll_order import RollOrder
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.storage.plans import write_plan
from pulsar_advisor.storage.root import Root, Snapshot
from unit.execution.actors import ALICE
from unit.execution.doubles import B1, make_plan, unload_step
from unit.execution.roll.doubles import drained

FIRST = Restart("b", 2, 9, {"a": 2}, will_move_again=2, stay=0, without_room=0, highest_usage_ratio=0.5)
SECOND = Restart("a", 31, 20, {"b": 30, "c": 1}, will_move_again=0, stay=1, without_room=1, highest_usage_ratio=0.4)
ORDER = RollOrder(("b", "a"), (FIRST, SECOND), ("c",), "a", None)


def test_each_turn_says_what_moves_where_and_the_whole_how_long_it_takes() -> None:
    assert list(roll_lines(ORDER)) == [
        "  1. b → a 2",
        "     2 bundles, 9 clients, 2 of them again later; the busiest other broker is then at 50.0%",
        "  2. a (the leader) → b 30, c 1",
        "     31 bundles, 20 clients, 1 stays; the busiest other broker is then at 40.0%",
        "33 moves, about 8 min at the pace that is approved by default, and 2 restarts",
    ]


def test_turns_that_move_nothing_take_no_time() -> None:
    *_, last = roll_lines(replace(ORDER, turns=(replace(FIRST, bundles=0, onto={}, will_move_again=0, stay=2),)))
    assert last == "0 moves and 1 restart"


def test_of_many_destinations_those_that_take_most_are_named() -> None:
    scattered = replace(FIRST, onto={"c": 1, "d": 2, "e": 493, "f": 2, "g": 3})
    first, *_ = roll_lines(replace(ORDER, turns=(scattered,)))
    assert first == "  1. b → e 493, g 3, d 2 and 3 to 2 more"


def test_the_plan_is_made_for_the_order_of_one_snapshot(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(Root, "resolve", lambda root, _id: root.snapshot("20261125T040000Z"))

    def order(snapshot: Snapshot, *wanted: Any) -> RollOrder:
        asked.append((snapshot.id, *wanted))
        return ORDER

    def answer(making: Making, request: Request) -> None:
        asked.append((request.goal, making.snapshot))

    monkeypatch.setattr("pulsar_advisor.stages.roll_order.run", order)
    monkeypatch.setattr(Making, "answer", answer)
    line = f"roll b a --spare d --ceiling 70% --root {tmp_path} --cluster demo"
    assert exit_code(line.split()) == 0
    assert asked == [
        ("20261125T040000Z", ("b", "a"), ("d",), 0.7),
        (Goal(ROLL, ("b", "a"), None, 0.7), "20261125T040000Z"),
    ]


def test_a_reader_of_json_is_told_to_balance_first_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    order = replace(ORDER, balance_first="Balance first: b is above 85%.")
    monkeypatch.setattr(Root, "resolve", lambda root, _id: root.snapshot("20261125T040000Z"))
    monkeypatch.setattr("pulsar_advisor.stages.roll_order.run", lambda *_: order)
    monkeypatch.setattr(Making, "answer", lambda *_, **__: None)
    assert exit_code(["roll", "--json", "--root", str(tmp_path), "--cluster", "demo"]) == 0
    said = capsys.readouterr()
    assert ("Balance first: b is above 85%." in said.err, said.out) == (True, "")


def test_no_order_is_shown_where_no_plan_can_be_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    order = replace(ORDER, why_none="the Simple load manager doesn't keep the destination of an unload.")
    monkeypatch.setattr(Root, "resolve", lambda root, _id: root.snapshot("20261125T040000Z"))
    monkeypatch.setattr("pulsar_advisor.stages.roll_order.run", lambda *_: order)
    monkeypatch.setattr(Making, "answer", lambda *_, **__: None)
    assert exit_code(["roll", "--root", str(tmp_path), "--cluster", "demo"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("roll continue c8b31b82 --restarted b --anew", 2),
        ("roll continue", 2),
        ("roll end c8b31b82", 2),
        ("roll status c8b31b82", 2),
    ],
)
def test_what_is_missing_or_contradicts_is_refused(
    line: str, code: int, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code([*line.split(), "--root", str(tmp_path), "--cluster", "demo"]) == code
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    ("overridden", "restart", "says"),
    [
        ("fALSE", B1, f"{B1} is drained. Restart it"),
        ("true", None, f"{B1} was drained, but {GUARDED[0]} is 'true'"),
        (None, B1, f"{B1} is drained. Restart it"),
    ],
    ids=["off", "on", "not to be seen"],
)
def test_status_names_no_broker_to_restart_while_the_balancer_is_seen_to_be_on(
    overridden: str | None,
    restart: str | None,
    says: str,
    root: Root,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with closing(open_ledger(root.ledger_url)) as ledger:
        roll = drained(ledger, root.cluster)
    roll.cluster.overrides[GUARDED[0]] = str(overridden)
    roll.cluster.unreadable = overridden is None
    monkeypatch.setattr("pulsar_advisor.stages.apply.AdminCluster", lambda _transport: roll.cluster)
    where = ["--root", root.url, "--cluster", root.cluster, "--admin-url", "http://127.0.0.1:1"]
    assert exit_code(["roll", "status", roll.digest, *where, "--json"]) == 0
    printed = capsys.readouterr()
    shown = json.loads(printed.out)
    assert (shown["restart"], shown["sentence"].startswith(says)) == (restart, True)
    assert ("can't see whether the balancer is off" in printed.err) == (overridden is None)


def test_status_believes_no_other_cluster_about_the_balancer(
    root: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(open_ledger(root.ledger_url)) as ledger:
        roll = drained(ledger, root.cluster)
    roll.cluster.overrides[GUARDED[0]], roll.cluster.name = "true", "staging"
    monkeypatch.setattr("pulsar_advisor.stages.apply.AdminCluster", lambda _transport: roll.cluster)
    where = ["--root", root.url, "--cluster", root.cluster, "--admin-url", "http://127.0.0.1:1"]
    assert exit_code(["roll", "status", roll.digest, *where]) == 0
    assert "is off: the connection reaches cluster 'staging', not 'live of test'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "connection",
    ['zookeeper = { hosts = "127.0.0.1:1" }', 'admin = { admin_urls = ["http://b:1"], token_file = "/not/here" }'],
    ids=["without an admin URL", "with a token that isn't here"],
)
def test_status_needs_no_connection_of_its_profile(
    connection: str, root: Root, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(open_ledger(root.ledger_url)) as ledger:
        roll = drained(ledger, root.cluster)
    (tmp_path / "config.toml").write_text(
        f'[profiles.p]\nroot = "{root.url}"\ncluster = "{root.cluster}"\n{connection}\n'
    )
    where = ["--config", str(tmp_path / "config.toml"), "--profile", "p"]
    assert exit_code(["roll", "status", roll.digest, *where, "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["restart"] == B1
    assert "can't see whether the balancer is off: " in printed.err


@pytest.mark.parametrize("line", ["status", "pause --as bob", "end --as bob", "continue --restarted b"])
def test_a_plan_that_is_no_roll_is_refused_and_nothing_is_recorded(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, plan = Root(str(tmp_path), "demo"), make_plan([unload_step()])
    write_plan(root, plan)
    with closing(open_ledger(root.ledger_url)) as ledger:
        propose(ledger, plan, ALICE)
        before = ledger.head()
    verb, *options = line.split()
    options += ["--root", str(tmp_path), "--cluster", "demo", "--admin-url", "http://127.0.0.1:1"]
    assert exit_code(["roll", verb, short(digest_of(plan)), *options]) == 4
    assert "is not a roll" in capsys.readouterr().err
    with closing(open_ledger(root.ledger_url)) as ledger:
        assert ledger.head() == before


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roll:
    """A roll that waits for a restart, in the root that the environment names."""
    root = Root(str(tmp_path), "demo")
    with closing(open_ledger(root.ledger_url)) as ledger:
        roll = drained(ledger, root.cluster)
    write_plan(root, roll.plan)
    monkeypatch.setenv(ROOT_VARIABLE, root.url)
    monkeypatch.setenv(CLUSTER_VARIABLE, root.cluster)
    return replace(roll, ledger=open_ledger(root.ledger_url))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("pause --as bob", "no admin URL"),
        (f"continue --restarted {B1}", "no admin URL"),
        (f"continue --restarted {B1} --admin-url http://127.0.0.1:1 --wait soon", "'soon' is not a duration"),
    ],
)
def test_a_call_that_can_not_be_carried_out_records_nothing(
    line: str, why: str, waiting: Roll, capsys: pytest.CaptureFixture[str]
) -> None:
    before = waiting.ledger.head()
    verb, *options = line.split()
    assert exit_code(["roll", verb, short(waiting.digest), *options]) == 2
    assert why in capsys.readouterr().err
    assert waiting.ledger.head() == before


def test_whoever_withdraws_a_roll_that_waits_reads_that_the_balancer_is_still_off(
    waiting: Roll, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["withdraw", short(waiting.digest), "--as", "bob"]) == 8
    assert "loadBalancerSheddingEnabled of cluster 'live of demo' was switched off by run 1" in capsys.readouterr().err
