"""`guard`: what runs left off, put back, or left as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pulsar_advisor.cli import exit_code
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.switches import record_switching_off
from pulsar_advisor.execution.run.guard.settings import OFF
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.storage.root import Root
from unit.execution.actors import approved, run, started
from unit.execution.doubles import FakeCluster, FakeTime, make_plan, unload_step

SHEDDING, SPLITTING = "loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled"
PLAN = make_plan([unload_step()])

Guard = Callable[..., int]


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path), PLAN.cluster)


@pytest.fixture
def ledger(root: Root) -> Iterator[Ledger]:
    with closing(open_ledger(root.ledger_url, FakeTime().now_ms)) as opened:
        yield opened


@pytest.fixture
def cluster(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster that refused to have its balancer back after a run."""
    cluster = FakeCluster(FakeTime())
    cluster.on_event = lambda what: setattr(cluster, "rejects_overrides", what == "after the call")
    assert run(approved(ledger, PLAN), ledger, cluster, guard=True).exit_code == 8
    monkeypatch.setattr("pulsar_advisor.stages.apply.AdminCluster", lambda _transport: cluster)
    return cluster


@pytest.fixture
def guard(root: Root) -> Guard:
    def call(*words: str) -> int:
        reach = ["--admin-url", "http://127.0.0.1:1"] if "restore" in words else []
        return exit_code(["guard", *words, "--root", root.url, "--cluster", root.cluster, *reach])

    return call


def test_it_is_shown_until_it_is_restored(
    guard: Guard, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guard() == 8
    assert f"ATTENTION: {SHEDDING} of cluster 'live' was switched off by run 1" in capsys.readouterr().out
    assert guard("restore") == 8
    assert f"ATTENTION: {SHEDDING} is still '{OFF}': answer 401" in capsys.readouterr().err
    cluster.rejects_overrides = False
    assert guard("restore") == 0
    assert guard() == 0
    assert (cluster.overrides, capsys.readouterr().out) == ({}, "nothing is left off\n" * 2)


def test_the_list_of_runs_says_so_until_then(
    guard: Guard, cluster: FakeCluster, root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown() -> str:
        assert exit_code(["runs", "--root", root.url, "--cluster", root.cluster]) == 0
        return capsys.readouterr().out

    assert "done" in shown() and ", balancer still off: 1 of 1 steps confirmed" in shown()
    cluster.rejects_overrides = False
    assert guard("restore") == 0
    assert "balancer still off:" not in shown()


def test_what_is_off_under_an_earlier_name_of_the_cluster_does_not_keep_the_present_one_from_being_restored(
    guard: Guard, cluster: FakeCluster, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    identity = PLAN.identity.model_copy(update={"cluster_name": "earlier"})
    held = started(ledger, make_plan([unload_step()], identity=identity))
    record_switching_off(held, SHEDDING, None, OFF, {})
    held.end("stopped", "lost")
    cluster.rejects_overrides = False
    assert guard("restore") == 4
    assert "the connection reaches cluster 'live', not 'earlier'" in capsys.readouterr().err
    assert cluster.overrides == {}


def test_a_person_may_leave_it_off(guard: Guard, cluster: FakeCluster, ledger: Ledger) -> None:
    assert guard("leave", "--as", "bob") == 0
    assert (guard(), cluster.overrides) == (0, {SHEDDING: OFF, SPLITTING: OFF})
    assert "left as it is, by bob (unauthenticated:" in ledger.events(digest_of(PLAN))[-1].detail


def test_as_json_it_has_what_the_ledger_knows(
    guard: Guard, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guard("--json") == 8
    first = json.loads(capsys.readouterr().out)[0]
    assert (first["cluster_name"], first["run"], first["setting"], first["before"]) == ("live", 1, SHEDDING, None)


def test_without_a_ledger_there_is_nothing_to_look_at(guard: Guard, capsys: pytest.CaptureFixture[str]) -> None:
    assert guard() == 4
    assert "has no ledger, so no run was ever recorded" in capsys.readouterr().err


def test_it_is_said_that_the_ledger_knows_no_plan_of_a_cluster(
    root: Root, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["guard", "--root", root.url, "--cluster", "another"]) == 0
    assert capsys.readouterr().out == "the ledger has no plan of this cluster: no run left anything off\n"
