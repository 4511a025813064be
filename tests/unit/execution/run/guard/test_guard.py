"""The cluster's own balancer is off while a plan is carried out, and as it was afterwards, whatever happens."""

from __future__ import annotations

import itertools
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Override, Reply, Split, Unload
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.held_run import HeldRun, take_over
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.switches import record_switched_back, switched_off
from pulsar_advisor.execution.ledger.tables import GUARD_EVENTS
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.guard import guard, restoring
from pulsar_advisor.execution.run.guard.left_off import leave_as_it_is
from pulsar_advisor.execution.run.guard.restoring import restore_what_was_left
from pulsar_advisor.execution.run.guard.settings import OFF
from pulsar_advisor.execution.run.options import Work
from pulsar_advisor.execution.run.steering import abort, pause
from pulsar_advisor.model.errors import BalancerStillOff, ClusterUnreachable, Refused
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import BOB, approved, carried_out, run
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    BASKETS,
    CUT,
    LOWER,
    MOVE,
    FakeCluster,
    make_plan,
    split_step,
    unload_step,
    widen,
)

SHEDDING, SPLITTING = "loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled"
EARLIER = Path(__file__).parents[4] / "data" / "earlier"
BOTH_OFF = {SHEDDING: OFF, SPLITTING: OFF}


@pytest.fixture
def plan(ledger: Ledger) -> Plan:
    return approved(ledger, make_plan([MOVE, CUT]))


@pytest.mark.parametrize(
    "before", [{}, {SHEDDING: "true"}, {SHEDDING: "false", SPLITTING: "true"}, {SHEDDING: " true"}]
)
def test_the_balancer_is_off_during_the_run_and_then_as_before(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, before: dict[str, str]
) -> None:
    cluster.overrides = dict(before)
    seen: list[dict[str, str]] = []
    cluster.whenever("before the call", lambda: seen.append(dict(cluster.overrides)))
    assert run(plan, ledger, cluster, guard=True).outcome == "done"
    assert seen == [BOTH_OFF | {name: value for name, value in before.items() if value != "true"}] * 2
    assert cluster.overrides == before


def test_without_the_option_nothing_is_switched(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    cluster.on_event = lambda _what: pytest.fail("switched") if cluster.overrides else None
    assert run(plan, ledger, cluster).outcome == "done"


def test_a_run_that_fails_restores_it_too(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    cluster.lands_on = lambda _unload: B1
    assert run(plan, ledger, cluster, guard=True).exit_code == 5
    assert cluster.overrides == {}


def test_where_it_can_not_be_switched_off_nothing_is_sent(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    cluster.rejects_overrides = True
    why = "loadBalancerSheddingEnabled can't be switched off: answer 401 not a super-user; switch it off by hand"
    with pytest.raises(Refused, match=why):
        run(plan, ledger, cluster, guard=True)
    assert (cluster.writes, switched_off(ledger, "live")) == ([], ())


def test_where_it_was_switched_off_by_hand_it_need_not_be(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    cluster.rejects_overrides, cluster.overrides = True, {SHEDDING: "false", SPLITTING: "false"}
    assert run(plan, ledger, cluster, guard=True).outcome == "done"


def left_off(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    """The cluster can't be reached any more in mid-run, so that the balancer stays off."""
    cluster.once("after the call", lambda: setattr(cluster, "unreadable", True))
    assert run(plan, ledger, cluster, guard=True).exit_code == 8
    cluster.unreadable = False
    assert cluster.overrides == BOTH_OFF


def restore_left(ledger: Ledger, cluster: FakeCluster) -> None:
    """What `guard restore` does."""
    restore_what_was_left(Work(ledger, cluster, lambda _line: None, cluster.time.clock), "live")


def taken_over(ledger: Ledger, plan: Plan) -> HeldRun:
    """The plan's first run, in the hands of another process."""
    return take_over(ledger, runs_of_plan(ledger, digest_of(plan))[0], approvals_of_plan(ledger, digest_of(plan))[0])


def test_the_next_apply_of_any_plan_restores_what_was_left_and_says_so_loudly(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)
    other = approved(ledger, make_plan([split_step(1)]))
    lines: list[str] = []
    run(other, ledger, cluster, progress=lines.append)
    assert lines[:2] == [
        "ATTENTION: loadBalancerSheddingEnabled of cluster 'live' was switched off by run 1 and not restored "
        "(it was not overridden)",
        "loadBalancerSheddingEnabled is restored: not overridden",
    ]
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def test_nobody_restores_during_a_run_what_an_earlier_one_has_left_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)
    cluster.rejects_overrides = True
    seen: list[dict[str, str]] = []

    def restored_by_another_process() -> None:
        cluster.rejects_overrides = False
        restored(ledger, cluster)
        seen.append(dict(cluster.overrides))

    cluster.once("before the call", restored_by_another_process)
    other = approved(ledger, make_plan([split_step(1)]))
    assert run(other, ledger, cluster, guard=True).outcome == "done"
    assert (seen, cluster.overrides, switched_off(ledger, "live")) == ([BOTH_OFF], {}, ())


def test_what_a_resumed_run_switches_off_is_known_to_be_off_whatever_newer_runs_gave_back(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    widen(cluster)
    cluster.once("after the call", lambda: pause(ledger, plan, BOB))
    assert run(plan, ledger, cluster, guard=True).outcome == "partial"
    basket = unload_step(1, LOWER, B2, B3, namespace=BASKETS, expect=MOVE.expect.model_copy(update={"owner": B2}))
    assert carried_out(ledger, cluster, basket, guard=True).outcome == "done"
    seen: list[set[str]] = []
    cluster.once("before the call", lambda: seen.append({switch.setting for switch in switched_off(ledger, "live")}))
    assert run(plan, ledger, cluster, guard=True, resume=True).outcome == "done"
    assert seen == [{SHEDDING, SPLITTING}]


def test_a_process_that_restored_it_late_takes_nothing_from_the_run_that_switched_it_off_again(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)
    earlier = switched_off(ledger, "live")

    def restored_late() -> None:
        for switch in earlier:
            record_switched_back(ledger, switch, "restored: not overridden")

    cluster.once("before the call", restored_late)
    run(plan, ledger, cluster, guard=True, resume=True)
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def test_what_a_run_switches_off_again_while_another_setting_is_restored_stays_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_off(ledger, cluster, plan)
    restore = restoring.restore

    def restore_slowly(*of_the_first: Any) -> str | None:
        monkeypatch.setattr(restoring, "restore", restore)
        found = restore(*of_the_first)
        restore_left(ledger, cluster)
        guard.record_switching_off(taken_over(ledger, plan), SPLITTING, None, OFF, {})
        cluster.overrides[SPLITTING] = OFF
        return found

    monkeypatch.setattr(restoring, "restore", restore_slowly)
    restore_left(ledger, cluster)
    assert cluster.overrides == {SPLITTING: OFF}


def test_a_restoring_call_is_not_repeated_once_another_run_has_switched_the_setting_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)

    def busy_while_a_run_begins() -> Reply:
        guard.record_switching_off(taken_over(ledger, plan), SHEDDING, None, OFF, {})
        return BUSY

    cluster.mistaken_once("send", busy_while_a_run_begins)
    restore_left(ledger, cluster)
    assert cluster.overrides == BOTH_OFF


def test_a_run_that_is_aborted_just_before_it_switches_a_setting_off_leaves_it_on(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = guard.record_switching_off

    def record_and_be_aborted(*switch: Any) -> None:
        record(*switch)
        abort(ledger, plan, BOB)
        restore_left(ledger, cluster)

    monkeypatch.setattr(guard, "record_switching_off", record_and_be_aborted)
    with pytest.raises(Refused, match="was aborted or taken over"):
        run(plan, ledger, cluster, guard=True)
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def test_a_switch_is_not_repeated_once_the_run_was_aborted_and_its_settings_given_back(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    def busy_and_then_suspended() -> Reply:
        abort(ledger, plan, BOB)
        cluster.time.pass_s(120)
        restore_left(ledger, cluster)
        return BUSY

    cluster.mistaken_once("send", busy_and_then_suspended)
    with pytest.raises(Refused, match="was aborted or taken over"):
        run(plan, ledger, cluster, guard=True)
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def test_a_call_that_a_busy_broker_refused_is_not_said_to_be_open_once_the_run_is_aborted(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    def busy_and_then_aborted() -> Reply:
        abort(ledger, plan, BOB)
        return BUSY

    cluster.mistaken_once("send", busy_and_then_aborted)
    lines: list[str] = []
    with pytest.raises(Refused, match="was aborted or taken over"):
        run(plan, ledger, cluster, guard=True, progress=lines.append)
    assert [line for line in lines if "may still" in line] == []
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def test_what_a_run_has_switched_off_again_while_it_was_looked_at_stays_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)
    shown = cluster.override

    def a_run_begins(setting: str) -> str | None:
        cluster.override = shown  # type: ignore[method-assign]
        guard.record_switching_off(taken_over(ledger, plan), SHEDDING, None, OFF, {})
        return shown(setting)

    cluster.override = a_run_begins  # type: ignore[method-assign]
    restore_left(ledger, cluster)
    assert cluster.overrides == BOTH_OFF


@pytest.mark.parametrize("reached", [{"name": "staging"}, {"brokers": {"10.9.9.1:8080", "10.9.9.2:8080"}}])
def test_another_cluster_reached_by_mistake_is_left_alone_and_the_warning_stays(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, reached: dict[str, object]
) -> None:
    left_off(ledger, cluster, plan)
    elsewhere = FakeCluster(cluster.time, overrides={SHEDDING: OFF, SPLITTING: "true"}, **reached)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"this is another cluster|the brokers reached say 'staging'"):
        run(plan, ledger, elsewhere, resume=True)
    assert elsewhere.overrides == {SHEDDING: OFF, SPLITTING: "true"}
    assert [switch.setting for switch in switched_off(ledger, "live")] == [SHEDDING, SPLITTING]


def test_a_run_that_is_dag_run_keeps_its_guard(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    def apply_another() -> None:
        with pytest.raises(Refused):
            carried_out(ledger, cluster, split_step(1))
        assert cluster.overrides == BOTH_OFF

    cluster.whenever("before the call", apply_another)
    assert run(plan, ledger, cluster, guard=True).outcome == "done"
    assert cluster.overrides == {}


@pytest.mark.parametrize("theirs", ["false", "FALSE", "true"])
def test_what_someone_has_set_meanwhile_is_left_alone_and_reported(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, theirs: str
) -> None:
    cluster.on_event = after_the_calls(2, lambda: cluster.overrides.update({SHEDDING: theirs}))
    result = run(plan, ledger, cluster, guard=True)
    assert cluster.overrides == {SHEDDING: theirs}
    assert (result.outcome, result.exit_code) == ("done", 0)
    assert f"{SHEDDING} is '{theirs}': someone has set it meanwhile, so it stays" in result.sentence


def after_the_calls(number: int, happens: Callable[[], object]) -> Callable[[str], None]:
    """Something happens after this many calls, before the next one."""
    seen = itertools.count(1)

    def on_event(what: str) -> None:
        if what == "after the call" and next(seen) == number:
            happens()

    return on_event


@pytest.mark.parametrize("now", [None, "true"])
def test_a_run_whose_guard_is_gone_stops_before_its_next_step_and_says_so(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, now: str | None
) -> None:
    def take_away() -> None:
        cluster.overrides.pop(SHEDDING)
        cluster.overrides |= {} if now is None else {SHEDDING: now}

    cluster.on_event = after_the_calls(1, take_away)
    result = run(plan, ledger, cluster, guard=True)
    assert (result.exit_code, len(cluster.writes)) == (5, 1)
    assert f"the guard is gone: {SHEDDING} is {'not overridden' if now is None else repr(now)}" in result.sentence
    assert cluster.overrides == ({} if now is None else {SHEDDING: now})


def test_a_guard_that_another_process_gave_back_after_the_last_step_is_reported(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    def give_back() -> None:
        for switch in switched_off(ledger, "live"):
            cluster.overrides.pop(switch.setting)
            record_switched_back(ledger, switch, "restored: not overridden")

    cluster.on_event = after_the_calls(2, give_back)
    result = run(plan, ledger, cluster, guard=True)
    assert result.outcome == "done"
    assert f"{SHEDDING} was restored by another process before the run ended" in result.sentence


def test_a_refused_restore_is_an_outcome_of_its_own(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    cluster.on_event = after_the_calls(2, lambda: setattr(cluster, "rejects_overrides", True))
    result = run(plan, ledger, cluster, guard=True)
    assert (result.outcome, result.exit_code, result.still_off) == ("done", 8, (SHEDDING, SPLITTING))
    assert f"ATTENTION: {SHEDDING} is still '{OFF}': answer 401 not a super-user" in result.sentence
    assert runs_of_plan(ledger, digest_of(plan))[0].sentence == result.sentence

    again = run(plan, ledger, cluster, guard=True)
    assert (again.outcome, again.exit_code) == ("nothing_to_do", 8)
    cluster.rejects_overrides = False
    assert run(plan, ledger, cluster, guard=True).exit_code == 0
    assert cluster.overrides == {}


BUSY = Reply(503, "busy")


def unreadable() -> None:
    raise ClusterUnreachable("404, not found")


def test_a_broker_that_is_busy_is_asked_again_to_switch_it_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    cluster.mistaken_once("send", lambda: BUSY)
    assert run(plan, ledger, cluster, guard=True).outcome == "done"


def test_a_single_wrong_answer_does_not_mean_that_it_is_on_again(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    cluster.once("after the call", lambda: cluster.mistaken_once("override", lambda: None))
    assert run(plan, ledger, cluster, guard=True).outcome == "done"


@pytest.mark.parametrize("after", [0, 1, 2], ids=["before", "at the second look", "once it is off"])
def test_a_single_wrong_answer_does_not_mean_that_there_was_no_override(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, after: int
) -> None:
    cluster.overrides = {SHEDDING: "true"}
    cluster.mistaken_once("override", lambda: None, after)
    assert run(plan, ledger, cluster, guard=True).outcome == "done"
    assert cluster.overrides == {SHEDDING: "true"}


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("send", lambda: BUSY),
        ("send", lambda: Reply(None, "connection closed")),
        ("override", unreadable),
        ("override", lambda: "true"),
    ],
)
def test_a_single_bad_answer_does_not_leave_it_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, method: str, answer: Callable[[], object]
) -> None:
    cluster.on_event = after_the_calls(2, lambda: cluster.mistaken_once(method, answer))
    assert run(plan, ledger, cluster, guard=True).exit_code == 0
    assert cluster.overrides == {}


@pytest.mark.parametrize("then", ["leaves the list", "comes back", "stays silent"])
def test_a_broker_that_has_died_does_not_leave_it_off_once_it_has_left_the_list_or_come_back(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, then: str
) -> None:
    shown = cluster.effective
    silent, behind, soon = {B3}, {B3}, list[dict[str, str]]()

    def of_each(setting: str) -> dict[str, str]:
        if silent & cluster.active_brokers():
            unreadable()
        return {**shown(setting), **({B3: "false"} if behind and then == "comes back" else {})}

    def die() -> None:
        cluster.effective = of_each  # type: ignore[method-assign]
        cluster.later(5, lambda: soon.append(dict(cluster.overrides)))
        if then == "leaves the list":
            cluster.later(30, lambda: cluster.brokers.discard(B3))
        elif then == "comes back":
            cluster.later(30, silent.clear)
            cluster.later(33, behind.clear)

    cluster.on_event = after_the_calls(2, die)
    result = run(plan, ledger, cluster, guard=True)
    assert (soon, cluster.overrides) == ([{}], {})
    assert result.still_off == ((SHEDDING, SPLITTING) if then == "stays silent" else ())
    assert ("may still be off" in result.sentence) == (then == "stays silent")


def test_nor_does_one_that_keeps_every_call_waiting_until_it_has_left_the_list(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    shown = cluster.effective

    def of_each(setting: str) -> dict[str, str]:
        if B3 in cluster.active_brokers():
            cluster.time.pass_s(20)
            unreadable()
        return shown(setting)

    def die() -> None:
        cluster.effective = of_each  # type: ignore[method-assign]
        cluster.later(30, lambda: cluster.brokers.discard(B3))

    cluster.on_event = after_the_calls(2, die)
    assert run(plan, ledger, cluster, guard=True).still_off == ()


def test_a_single_bad_answer_does_not_keep_off_what_an_earlier_run_left_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)
    cluster.mistaken_once("override", unreadable)
    restore_left(ledger, cluster)
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def test_whoever_restores_waits_for_a_broker_that_has_just_died(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)
    shown = cluster.effective
    cluster.effective = lambda setting: unreadable() if B3 in cluster.active_brokers() else shown(setting)  # type: ignore[method-assign, assignment, return-value]
    cluster.later(30, lambda: cluster.brokers.discard(B3))
    restore_left(ledger, cluster)
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def test_an_apply_that_is_to_end_does_not_wait_for_a_broker_that_has_died(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)
    cluster.override = lambda _setting: unreadable()  # type: ignore[method-assign]
    began_ms = cluster.time.ms
    with pytest.raises(ClusterUnreachable):
        run(plan, ledger, cluster, guard=True, resume=True, interruption=lambda: "ended by SIGINT")
    assert cluster.time.ms - began_ms < 10_000


def test_a_setting_that_can_not_be_read_does_not_keep_the_other_one_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    override = cluster.override

    def read(setting: str) -> str | None:
        return unreadable() if setting == SHEDDING else override(setting)

    cluster.on_event = after_the_calls(2, lambda: setattr(cluster, "override", read))
    assert run(plan, ledger, cluster, guard=True).still_off == (SHEDDING,)
    assert cluster.overrides == {SHEDDING: OFF}


def test_a_setting_that_can_not_be_read_does_not_keep_the_other_one_off_if_both_were_left_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)
    override = cluster.override

    def read(setting: str) -> str | None:
        return unreadable() if setting == SHEDDING else override(setting)

    cluster.override = read  # type: ignore[method-assign]
    with pytest.raises(ClusterUnreachable):
        restore_left(ledger, cluster)
    assert cluster.overrides == {SHEDDING: OFF}
    assert [switch.setting for switch in switched_off(ledger, "live")] == [SHEDDING]


def test_if_nothing_was_sent_either_the_error_says_that_the_balancer_is_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    send = cluster.send

    def refuses_the_second(write: Override) -> Reply:
        if write.setting == SPLITTING:
            cluster.rejects_overrides = True
        return send(write)

    cluster.send = refuses_the_second  # type: ignore[method-assign, assignment]
    with pytest.raises(BalancerStillOff, match=f"ATTENTION: {SHEDDING} is still"):
        run(plan, ledger, cluster, guard=True)
    assert (cluster.overrides, cluster.writes) == ({SHEDDING: OFF}, [])


def test_of_a_run_aborted_before_its_first_call_the_error_says_that_the_balancer_is_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    def end_it(write: Override) -> Reply:
        if write.setting == SPLITTING:
            abort(ledger, plan, BOB)
            cluster.rejects_overrides = True
        return send(write)

    send, cluster.send = cluster.send, end_it  # type: ignore[method-assign, assignment]
    with pytest.raises(BalancerStillOff, match="was aborted or taken over by another process"):
        run(plan, ledger, cluster, guard=True)
    assert cluster.overrides == {SHEDDING: OFF}


def test_a_switch_that_had_no_answer_and_no_effect_yet_stays_a_debt(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    cluster.send = lambda _write: Reply(None, "timed out")  # type: ignore[method-assign]
    with pytest.raises(
        BalancerStillOff, match=f"the call that switches {SHEDDING} off got no answer, and may still take effect"
    ):
        run(plan, ledger, cluster, guard=True)
    assert [switch.setting for switch in switched_off(ledger, "live")] == [SHEDDING]


def test_a_switch_that_had_no_answer_and_acts_before_the_run_ends_is_put_back(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    send = cluster.send

    def acts_late(write: Override) -> Reply:
        if write == Override(SPLITTING, OFF):
            return Reply(None, "timed out")
        if write == Override(SHEDDING, None):  # restored first
            cluster.overrides[SPLITTING] = OFF
        return send(write)

    cluster.send = acts_late  # type: ignore[method-assign, assignment]
    with pytest.raises(Refused, match=f"{SPLITTING} can't be switched off"):
        run(plan, ledger, cluster, guard=True)
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def unanswered(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    """The call that switches shedding off has no answer, and no effect so far."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "send", lambda _write: Reply(None, "timed out"))
        with pytest.raises(BalancerStillOff):
            run(plan, ledger, cluster, guard=True)


def restored(ledger: Ledger, cluster: FakeCluster) -> list[str]:
    lines: list[str] = []
    restore_what_was_left(Work(ledger, cluster, lines.append, cluster.time.clock), "live", is_expected=True)
    return lines


@pytest.mark.parametrize("is_mistaken", [False, True])
def test_nobody_takes_such_a_switch_for_restored_and_what_comes_late_is_put_back(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, is_mistaken: bool
) -> None:
    unanswered(ledger, cluster, plan)
    if is_mistaken:
        cluster.mistaken_once("override", lambda: OFF)
    [line] = restored(ledger, cluster)
    assert line.startswith(f"ATTENTION: the call that switches {SHEDDING} off got no answer, and may")
    cluster.overrides[SHEDDING] = OFF  # the call takes effect
    restored(ledger, cluster)
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def test_once_it_can_not_come_any_more_the_switch_is_settled(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    unanswered(ledger, cluster, plan)
    cluster.time.pass_s(120)
    assert restored(ledger, cluster) == [f"{SHEDDING} is restored: not overridden"]
    assert switched_off(ledger, "live") == ()


def test_a_run_waits_until_such_a_call_of_an_earlier_one_can_not_act_any_more(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    """Nothing would show that it acted during this run, which writes the same, or would act after it."""
    began_ms, seen = cluster.time.ms, []
    unanswered(ledger, cluster, plan)
    cluster.mistaken_once("override", lambda: OFF, after=2)  # once apply has restored what was left
    cluster.whenever("before the call", lambda: seen.append(cluster.time.ms - began_ms))
    result = run(plan, ledger, cluster, guard=True)
    assert (result.outcome, result.still_off, cluster.overrides) == ("done", (), {})
    assert min(seen) >= 120_000


def test_a_run_waits_until_an_unanswered_call_of_an_earlier_one_has_acted(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    unanswered(ledger, cluster, plan)
    began_ms = cluster.time.ms
    cluster.later(40, lambda: cluster.overrides.update({SHEDDING: OFF}))
    lines: list[str] = []
    result = run(plan, ledger, cluster, progress=lines.append, guard=True)
    assert (result.outcome, result.still_off, cluster.overrides) == ("done", (), {})
    assert cluster.time.ms - began_ms < 100_000
    assert len([line for line in lines if line.endswith("may still take effect; waiting until it can't")]) == 1


def test_a_clock_that_was_set_back_makes_nobody_wait_longer_for_that(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    unanswered(ledger, cluster, plan)
    cluster.time.set_ahead_s, began_ms = -500.0, cluster.time.ms
    assert run(plan, ledger, cluster, guard=True).outcome == "done"
    assert cluster.time.ms - began_ms < 400_000


def test_a_run_that_is_stopped_while_it_waits_for_that_sends_nothing(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    unanswered(ledger, cluster, plan)
    with pytest.raises(Refused, match="nothing was sent: ended by SIGTERM"):
        run(plan, ledger, cluster, guard=True, interruption=lambda: "ended by SIGTERM")
    assert cluster.overrides == {}


@pytest.mark.parametrize("brokers", [{B1}, {B1, B2}])
def test_where_brokers_do_not_notice_a_deletion_the_old_value_is_set(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, brokers: set[str]
) -> None:
    cluster.misses_deletions = brokers
    result = run(plan, ledger, cluster, guard=True)
    assert cluster.overrides == {SHEDDING: "true", SPLITTING: "true"}
    assert set(cluster.effective(SHEDDING).values()) == {"true"}
    assert (result.exit_code, result.still_off) == (0, ())
    behind = ", ".join(sorted(brokers))
    assert f"{SHEDDING} is 'true', set instead of deleted: {behind} missed the deletion, as a broker" in result.sentence


def test_what_an_earlier_run_left_off_in_their_memory_does_not_count_as_what_was_there(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    cluster.misses_deletions = set(cluster.brokers)
    answers = cluster.send

    def deletes_only(write: Unload | Split | Override) -> Reply:
        is_set = isinstance(write, Override) and write.value == "true"
        return Reply(401, "not a super-user") if is_set else answers(write)

    cluster.send = deletes_only  # type: ignore[method-assign]
    assert carried_out(ledger, cluster, MOVE, guard=True).exit_code == 8
    cluster.once("before the call", lambda: setattr(cluster, "send", answers))
    assert carried_out(ledger, cluster, unload_step(1, LOWER, B2, B1), guard=True).exit_code == 0
    assert set(cluster.effective(SHEDDING).values()) == {"true"}


def test_brokers_that_were_all_replaced_are_given_what_the_earlier_ones_had(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    cluster.misses_deletions = set(cluster.brokers)
    shown = cluster.effective
    named: list[str] = []

    def under_other_names_before(setting: str) -> dict[str, str]:
        named.append(setting)
        return {f"old-{broker}": value for broker, value in shown(setting).items()}

    cluster.effective = lambda setting: (shown if setting in named else under_other_names_before)(setting)  # type: ignore[method-assign]
    run(plan, ledger, cluster, guard=True)
    assert {value for setting in (SHEDDING, SPLITTING) for value in shown(setting).values()} == {"true"}


def test_what_somebody_sets_while_brokers_have_their_time_to_follow_is_left_alone(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    cluster.misses_deletions = {B1, B2}
    deleted, send = threading.Event(), cluster.send
    pass_s = cluster.time.pass_s

    def noting(write: Unload | Split | Override) -> Reply:
        if isinstance(write, Override) and write.value is None:
            deleted.set()
        return send(write)

    def somebody_acts(seconds: float) -> None:
        pass_s(seconds)
        if deleted.is_set():
            cluster.overrides.setdefault(SHEDDING, "false")

    cluster.send, cluster.time.pass_s = noting, somebody_acts  # type: ignore[method-assign]
    run(plan, ledger, cluster, guard=True)
    assert cluster.overrides[SHEDDING] == "false"


def test_brokers_that_still_differ_are_named_and_the_balancer_counts_as_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    shown = cluster.effective
    cluster.effective = lambda setting: {**shown(setting), **({B2: "false"} if cluster.writes else {})}  # type: ignore[method-assign]
    result = run(plan, ledger, cluster, guard=True)
    assert (result.exit_code, result.still_off) == (8, (SHEDDING, SPLITTING))
    assert f"{SHEDDING} is 'true' again, and still off in the memory of {B2}: restart them" in result.sentence
    cluster.effective = shown  # type: ignore[method-assign]
    assert run(plan, ledger, cluster, guard=True).exit_code == 0


def test_a_cluster_whose_file_has_it_off_is_left_with_its_own_value(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    cluster.own_settings = {SHEDDING: "false", SPLITTING: "false"}
    cluster.misses_deletions = {B1, B2}
    assert run(plan, ledger, cluster, guard=True).exit_code == 0
    assert cluster.overrides == {}


@pytest.fixture
def earlier(tmp_path: Path, cluster: FakeCluster) -> Iterator[Ledger]:
    """The ledger of a release that wrote a plain `false`: its run says done, and both settings are off."""
    with closing(sqlite3.connect(tmp_path / "earlier.sqlite")) as connection:
        connection.executescript((EARLIER / "guard.sql").read_text())
    cluster.overrides = {SHEDDING: "false", SPLITTING: "false"}
    with closing(open_ledger(f"sqlite:///{tmp_path}/earlier.sqlite", cluster.time.now_ms)) as ledger:
        yield ledger


def test_a_false_that_may_be_anyones_waits_for_a_person(earlier: Ledger, cluster: FakeCluster) -> None:
    lines: list[str] = []
    restore_what_was_left(Work(earlier, cluster, lines.append, cluster.time.clock), "live")
    assert cluster.overrides == {SHEDDING: "false", SPLITTING: "false"}
    assert "`pulsar-advisor guard restore --as NAME` restores it" in lines[-1]
    restore_what_was_left(Work(earlier, cluster, lines.append, cluster.time.clock), "live", BOB)
    assert (cluster.overrides, switched_off(earlier, "live")) == ({SHEDDING: "true"}, ())


def test_what_a_run_left_off_that_the_ledger_has_lost_waits_for_a_person(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    """The ledger was restored from a copy made before that run."""
    cluster.misses_deletions = {B2}
    for setting in BOTH_OFF:
        cluster.send(Override(setting, OFF))
    result = run(plan, ledger, cluster, guard=True)
    assert (result.outcome, result.exit_code, result.still_off) == ("done", 8, (SHEDDING, SPLITTING))
    assert f"{SHEDDING} is 'fALSE', as only the advisor leaves it, and this ledger lacks the run" in result.sentence
    assert "`pulsar-advisor guard restore --as NAME` restores it" in result.sentence
    assert cluster.overrides == BOTH_OFF
    lines: list[str] = []
    restore_what_was_left(Work(ledger, cluster, lines.append, cluster.time.clock), "live", BOB)
    assert lines[0].endswith("was found off by run 1 and not restored (it was 'fALSE')")
    assert switched_off(ledger, "live") == ()
    assert {cluster.effective(setting)[broker] for setting in BOTH_OFF for broker in (B1, B2)} == {"true"}


@pytest.mark.parametrize("decided_by", [None, BOB])
def test_what_was_found_off_is_not_switched_on_where_the_brokers_file_may_have_it_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, decided_by: Person | None
) -> None:
    """Either BOB restores it, or somebody deletes the overrides, and maintenance comes."""
    cluster.own_settings = dict.fromkeys(BOTH_OFF, "false")
    cluster.overrides = dict(BOTH_OFF)
    assert run(plan, ledger, cluster, guard=True).exit_code == 8
    cluster.overrides = {} if decided_by is None else cluster.overrides
    lines: list[str] = []
    restore_what_was_left(Work(ledger, cluster, lines.append, cluster.time.clock), "live", decided_by)
    assert cluster.overrides == {}
    assert f"{SPLITTING} is not overridden again, and still off in the memory of {B1}" in lines[-1]
    assert "restart them, unless their broker.conf has it off" in lines[-1]


def test_what_a_person_leaves_off_is_no_debt_of_the_next_run(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.overrides = dict(BOTH_OFF)
    codes = []
    for step in (MOVE, split_step(1)):
        codes.append(run(approved(ledger, make_plan([step])), ledger, cluster, guard=True).exit_code)
        leave_as_it_is(ledger, "live", BOB)
    assert codes == [8, 0]
    assert cluster.overrides == BOTH_OFF


def test_a_person_may_decide_that_it_stays_off(earlier: Ledger, cluster: FakeCluster) -> None:
    (digest,) = {switch.digest for switch in switched_off(earlier, "live")}
    leave_as_it_is(earlier, "live", BOB)
    assert (cluster.overrides, switched_off(earlier, "live")) == ({SHEDDING: "false", SPLITTING: "false"}, ())
    assert "left as it is, by bob (airflow)" in earlier.events(digest)[-1].detail


def test_whoever_writes_the_ledger_has_no_other_setting_changed_in_the_guards_name(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    run(plan, ledger, cluster)
    cluster.overrides = {"forceDeleteNamespaceAllowed": "false"}
    forged = {"setting": "forceDeleteNamespaceAllowed", "before": "true", "written": "false", "effective": {}}
    with ledger.writing() as session:
        ledger.add_event(session, digest_of(plan), GUARD_EVENTS[0], json.dumps(forged), run=1)
    restore_what_was_left(Work(ledger, cluster, lambda _line: None), "live")
    assert cluster.overrides == {"forceDeleteNamespaceAllowed": "false"}


def test_what_a_run_left_off_is_not_put_back_on_another_cluster_of_the_same_name(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    left_off(ledger, cluster, plan)
    theirs = FakeCluster(cluster.time, brokers={"theirs:8080"}, own_settings={SHEDDING: "false", SPLITTING: "false"})
    lines: list[str] = []
    restore_what_was_left(Work(ledger, theirs, lines.append, cluster.time.clock), "live")
    assert (theirs.overrides, len(switched_off(ledger, "live"))) == ({}, 2)
    identity = plan.identity.model_copy(update={"broker_ids": ("theirs:8080",)})
    of_theirs = approved(ledger, make_plan([MOVE], identity=identity))
    with pytest.raises(Refused, match="Another cluster of that name needs a ledger of its own"):
        run(of_theirs, ledger, theirs, guard=True)
    assert (theirs.overrides, len(switched_off(ledger, "live"))) == ({}, 2)
    restore_what_was_left(Work(ledger, cluster, lines.append, cluster.time.clock), "live")
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def test_a_dry_run_restores_nothing(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    left_off(ledger, cluster, plan)
    lines: list[str] = []
    run(plan, ledger, cluster, progress=lines.append, dry_run=True, resume=True)
    assert lines == []
    assert cluster.overrides == BOTH_OFF


def test_a_run_that_was_overtaken_leaves_the_guard_to_the_process_that_goes_on(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    def overtake() -> None:
        cluster.time.pass_s(181)
        taken_over(ledger, plan)

    cluster.whenever("after the call", overtake)
    assert "taken over" in run(plan, ledger, cluster, guard=True).sentence
    assert cluster.overrides == BOTH_OFF


def test_a_run_that_is_overtaken_while_it_restores_leaves_the_rest_to_the_process_that_goes_on(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    send = cluster.send

    def overtaken(write: Override) -> Reply:
        if write == Override(SHEDDING, None):  # restored first
            cluster.time.pass_s(181)
            taken_over(ledger, plan)
        return send(write)

    cluster.send = overtaken  # type: ignore[method-assign, assignment]
    run(plan, ledger, cluster, guard=True)
    assert cluster.overrides == {SPLITTING: OFF}


def test_an_answer_that_makes_no_sense_while_restoring_does_not_hide_how_the_run_ended(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    def spoil() -> None:
        cluster.override = lambda _setting: json.loads("[" * 100_000)  # type: ignore[method-assign]

    cluster.on_event = after_the_calls(2, spoil)
    lines: list[str] = []
    result = run(plan, ledger, cluster, progress=lines.append, guard=True)
    assert result.outcome == "done"
    assert lines[-1].startswith("ATTENTION: the cluster's own balancer could not be switched on again")
    assert result.exit_code == 8
    assert [switch.setting for switch in switched_off(ledger, "live")] == [SHEDDING, SPLITTING]


def test_a_process_that_was_suspended_before_it_switches_finds_out_that_it_was_overtaken(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = guard.record_switching_off

    def suspended_afterwards(held: HeldRun, setting: str, *how: Any) -> None:
        record(held, setting, *how)
        cluster.time.pass_s(181)
        other = taken_over(ledger, plan)
        other.end("stopped", "")
        restore_what_was_left(Work(ledger, cluster, lambda _line: None), "live")

    monkeypatch.setattr(guard, "record_switching_off", suspended_afterwards)
    with pytest.raises(Refused, match="taken over by another process"):
        run(plan, ledger, cluster, guard=True)
    assert (cluster.overrides, cluster.writes) == ({}, [])


def test_what_is_given_back_while_a_process_is_suspended_before_it_switches_is_recorded_again(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = guard.record_switching_off

    def suspended_afterwards(*switch: Any) -> None:
        monkeypatch.setattr(guard, "record_switching_off", record)
        record(*switch)
        cluster.time.pass_s(181)
        restore_left(ledger, cluster)

    monkeypatch.setattr(guard, "record_switching_off", suspended_afterwards)
    known: list[str] = []
    cluster.once("before the call", lambda: known.extend(one.setting for one in switched_off(ledger, "live")))
    assert run(plan, ledger, cluster, guard=True).outcome == "done"
    assert sorted(known) == sorted(BOTH_OFF)
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def suspended_amid_its_first_call(cluster: FakeCluster, happens: Callable[[], object], reply: Reply | None) -> None:
    """Something happens while a process is suspended amid its first call to switch a setting off.

    Then that acts, unless this is the reply to it.
    """
    send = cluster.send

    def suspended(write: Override) -> Reply:
        cluster.send = send  # type: ignore[method-assign]
        cluster.time.pass_s(181)
        happens()
        return reply or send(write)

    cluster.send = suspended  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("is_overtaken", [True, False], ids=["overtaken", "aborted"])
def test_a_switch_of_a_process_that_was_suspended_amid_its_call_is_given_back_though_the_run_is_over(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, is_overtaken: bool
) -> None:
    def over() -> None:
        if is_overtaken:
            assert run(plan, ledger, cluster, guard=True, resume=True).outcome == "done"
        else:
            abort(ledger, plan, BOB)
            restore_left(ledger, cluster)

    suspended_amid_its_first_call(cluster, over, None)
    with suppress(Refused):
        run(plan, ledger, cluster, guard=True)
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


@pytest.mark.parametrize(
    ("answer", "times", "after"),
    [(unreadable, 1, 0), (lambda: "true", 2, 0), (lambda: None, 1, 3)],
    ids=["unreadable", "wrong twice", "wrong at the end"],
)
def test_wrong_answers_after_such_a_call_do_not_leave_the_setting_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, answer: Callable[[], object], times: int, after: int
) -> None:
    def over() -> None:
        abort(ledger, plan, BOB)
        restore_left(ledger, cluster)
        for _ in range(times):
            cluster.mistaken_once("override", answer, after)

    suspended_amid_its_first_call(cluster, over, None)
    with pytest.raises(Refused):
        run(plan, ledger, cluster, guard=True)
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())


def test_such_a_call_stays_a_debt_while_it_has_no_answer_and_may_still_act(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    suspended_amid_its_first_call(cluster, lambda: restore_left(ledger, cluster), Reply(None, "timed out"))
    with pytest.raises(BalancerStillOff, match=f"switches {SHEDDING} off got no answer, and may still take effect"):
        run(plan, ledger, cluster, guard=True)
    assert [switch.setting for switch in switched_off(ledger, "live")] == [SHEDDING]


@pytest.mark.parametrize("answer", [unreadable, lambda: json.loads("[" * 100_000)], ids=["none", "nonsense"])
def test_a_bad_answer_about_what_another_process_gave_back_does_not_leave_the_other_setting_off(
    ledger: Ledger, cluster: FakeCluster, plan: Plan, answer: Callable[[], object]
) -> None:
    def give_one_back() -> None:
        shedding = switched_off(ledger, "live")[0]
        del cluster.overrides[SHEDDING]
        record_switched_back(ledger, shedding, "restored: not overridden")
        cluster.mistaken_once("override", answer)

    cluster.on_event = after_the_calls(2, give_one_back)
    assert run(plan, ledger, cluster, guard=True).exit_code == 0
    assert (cluster.overrides, switched_off(ledger, "live")) == ({}, ())
