"""The cluster's own balancer is off while a plan is carried out, and as it was afterwards, whatever happens."""

from __future__ import annotations

import json

import pytest

from pulsar_advisor.execution.apply import apply_plan
from pulsar_advisor.execution.guard import restore_what_was_left
from pulsar_advisor.execution.ledger import HeldRun, Ledger
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plan import Plan, digest_of
from unit.execution.actors import approved, options_of, run
from unit.execution.doubles import B1, FakeCluster, make_plan, split_step, unload_step

SHEDDING, SPLITTING = "loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled"
MOVE, CUT = unload_step(1), split_step(2)


@pytest.fixture
def plan(ledger: Ledger) -> Plan:
    return approved(ledger, make_plan([MOVE, CUT]))


@pytest.mark.parametrize("before", [{}, {SHEDDING: "true"}, {SHEDDING: "false", SPLITTING: "true"}])
def test_it_is_off_during_the_run_and_then_as_before(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, before: dict[str, str]
) -> None:
    cluster.overrides = dict(before)
    seen: list[dict[str, str]] = []
    cluster.on_event = lambda what: seen.append(dict(cluster.overrides)) if what == "before the call" else None
    assert run(plan, ledger, cluster, guard=True).outcome == "done"
    assert seen == [{SHEDDING: "false", SPLITTING: "false"}] * 2
    assert cluster.overrides == before


def test_without_the_option_nothing_is_switched(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    cluster.on_event = lambda _what: pytest.fail() if cluster.overrides else None
    assert run(plan, ledger, cluster).outcome == "done"


def test_a_run_that_fails_restores_it_too(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    cluster.lands_on = lambda _unload: B1
    assert run(plan, ledger, cluster, guard=True).exit_code == 5
    assert cluster.overrides == {}


def test_where_it_can_not_be_switched_off_nothing_is_sent(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    cluster.rejects_overrides = True
    with pytest.raises(Refused, match="loadBalancerSheddingEnabled can't be switched off: answer 401 not a super-user"):
        run(plan, ledger, cluster, guard=True)
    assert (cluster.writes, ledger.switched_off("live")) == ([], ())


def left_off(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    """The cluster can't be reached any more in mid-run, so that the balancer stays off."""
    cluster.on_event = lambda what: setattr(cluster, "unreadable", True) if what == "after the call" else None
    assert run(plan, ledger, cluster, guard=True).exit_code == 5
    cluster.unreadable, cluster.on_event = False, lambda _what: None
    assert cluster.overrides == {SHEDDING: "false", SPLITTING: "false"}


def applied(ledger: Ledger, cluster: FakeCluster, plan: Plan, **options: object) -> list[str]:
    """What `apply` says."""
    lines: list[str] = []
    apply_plan(plan, ledger, cluster, options_of(**options), lines.append, cluster.time.clock)
    return lines


def test_the_next_apply_of_any_plan_restores_what_was_left_and_says_so_loudly(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)
    other = approved(ledger, make_plan([split_step(1)]))
    lines = applied(ledger, cluster, other)
    assert lines[:2] == [
        "ATTENTION: loadBalancerSheddingEnabled of cluster 'live' was switched off by run 1 and not put back "
        "(it was not overridden)",
        "loadBalancerSheddingEnabled is restored: not overridden",
    ]
    assert (cluster.overrides, ledger.switched_off("live")) == ({}, ())


@pytest.mark.parametrize("reached", [{"name": "staging"}, {"brokers": {"10.9.9.1:8080", "10.9.9.2:8080"}}])
def test_another_cluster_reached_by_mistake_is_left_alone_and_the_warning_stays(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, reached: dict[str, object]
) -> None:
    left_off(ledger, cluster, plan)
    elsewhere = FakeCluster(cluster.time, overrides={SHEDDING: "false", SPLITTING: "true"}, **reached)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"this is another cluster|the brokers reached say 'staging'"):
        run(plan, ledger, elsewhere, resume=True)
    assert elsewhere.overrides == {SHEDDING: "false", SPLITTING: "true"}
    assert [switch.setting for switch in ledger.switched_off("live")] == [SHEDDING, SPLITTING]


def test_a_run_that_is_dag_run_keeps_its_guard(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    def apply_another(what: str) -> None:
        if what == "before the call":
            with pytest.raises(Refused):
                run(approved(ledger, make_plan([split_step(1)])), ledger, cluster)
            assert cluster.overrides == {SHEDDING: "false", SPLITTING: "false"}

    cluster.on_event = apply_another
    assert run(plan, ledger, cluster, guard=True).outcome == "done"
    assert cluster.overrides == {}


def test_what_someone_has_set_meanwhile_is_left_alone(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    cluster.on_event = lambda what: cluster.overrides.update({SHEDDING: "true"}) if what == "after the call" else None
    assert run(plan, ledger, cluster, guard=True).outcome == "done"
    assert cluster.overrides == {SHEDDING: "true"}


def test_a_dry_run_restores_nothing(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    left_off(ledger, cluster, plan)
    assert applied(ledger, cluster, plan, dry_run=True, resume=True) == []
    assert cluster.overrides == {SHEDDING: "false", SPLITTING: "false"}


def test_a_run_that_was_overtaken_leaves_the_guard_to_the_process_that_goes_on(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    def overtake(what: str) -> None:
        if what == "after the call":
            cluster.time.pass_s(181)
            ledger.take_over(ledger.runs(digest_of(plan))[0], ledger.approvals(digest_of(plan))[0])

    cluster.on_event = overtake
    assert "taken over" in run(plan, ledger, cluster, guard=True).sentence
    assert cluster.overrides == {SHEDDING: "false", SPLITTING: "false"}


def test_an_answer_that_makes_no_sense_while_restoring_does_not_hide_how_the_run_ended(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    def spoil(what: str) -> None:
        if what == "after the call" and len(cluster.writes) == 2:
            cluster.override = lambda _setting: json.loads("[" * 100_000)  # type: ignore[method-assign]

    cluster.on_event = spoil
    lines: list[str] = []
    result = apply_plan(plan, ledger, cluster, options_of(guard=True), lines.append, cluster.time.clock)
    assert result.outcome == "done"
    assert lines[-1].startswith("ATTENTION: the cluster's own balancer could not be switched on again")
    assert [switch.setting for switch in ledger.switched_off("live")] == [SHEDDING, SPLITTING]


def test_a_process_that_was_suspended_before_it_switches_finds_out_that_it_was_overtaken(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = HeldRun.switching_off

    def suspended_afterwards(held: HeldRun, setting: str, before: str | None) -> None:
        record(held, setting, before)
        cluster.time.pass_s(181)
        other = ledger.take_over(ledger.runs(digest_of(plan))[0], ledger.approvals(digest_of(plan))[0])
        other.end("stopped", "")
        restore_what_was_left(ledger, "live", cluster, lambda _line: None)

    monkeypatch.setattr(HeldRun, "switching_off", suspended_afterwards)
    with pytest.raises(Refused, match="taken over by another process"):
        run(plan, ledger, cluster, guard=True)
    assert (cluster.overrides, cluster.writes) == ({}, [])
