from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_advisor.documents.runs import RunState
from pulsar_advisor.execution.consent.approval import withdraw
from pulsar_advisor.execution.ledger import held_run
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.held_run import LeaseLost, start_run, take_over
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.pauses import RESUMED
from pulsar_advisor.execution.ledger.runs import is_held, run_by_id, runs_of_plan
from pulsar_advisor.execution.person import system_user
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.model.release import running_release
from pulsar_advisor.storage.process import Process, this_process
from unit.execution.actors import BOB, approved, started
from unit.execution.doubles import FakeTime, make_plan, unload_step

PLAN = make_plan([unload_step()])
DIGEST = digest_of(PLAN)


@pytest.mark.parametrize("ahead_s", [200, -200])
def test_a_host_whose_clock_differs_judges_a_lease_like_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: int
) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with closing(open_ledger(url)) as ledger:
        held = started(ledger, PLAN)
    monkeypatch.setattr("pulsar_advisor.execution.ledger.runs.has_ended", lambda _process: False)
    own, own_ns = time.time, time.time_ns
    monkeypatch.setattr("time.time", lambda: own() + ahead_s)
    monkeypatch.setattr("time.time_ns", lambda: own_ns() + ahead_s * 1_000_000_000)
    with closing(open_ledger(url)) as elsewhere:
        run = run_by_id(elsewhere, held.id)
        assert is_held(elsewhere, run)
        assert abs(elsewhere.now_ms() - run.heartbeat_at_ms) < 100_000


def test_one_run_per_cluster_is_active(ledger: Ledger) -> None:
    started(ledger, PLAN)
    other = approved(ledger, make_plan([unload_step()], seed=1))
    with pytest.raises(Refused, match=r"run 1 of plan sha256:.* is active on cluster 'live': process"):
        started(ledger, other)


def test_a_run_that_ended_as_another_was_to_begin_is_worth_another_try(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, other = started(ledger, PLAN), approved(ledger, make_plan([unload_step()], seed=1))
    [approval] = approvals_of_plan(ledger, digest_of(other))
    who_is_active = held_run._who_is_active

    def ended_meanwhile(ledger: Ledger, cluster_name: str) -> str:
        held.end("done", "")
        return who_is_active(ledger, cluster_name)

    monkeypatch.setattr(held_run, "_who_is_active", ended_meanwhile)
    with pytest.raises(Refused, match="another run on cluster 'live' was active a moment ago: try again"):
        start_run(ledger, other, approval)
    assert start_run(ledger, other, approval).id != held.id


@pytest.mark.parametrize("state", ["done", "stopped", "aborted"])
def test_whoever_begins_a_plan_that_somebody_else_has_begun_and_ended_meanwhile_is_refused(
    ledger: Ledger, state: RunState
) -> None:
    plan = make_plan([unload_step()])
    started(ledger, plan).end(state, "")
    with pytest.raises(Refused, match=f"somebody else began run 1 of this plan, now {state}: check it"):
        start_run(ledger, plan, approvals_of_plan(ledger, digest_of(plan))[0])
    assert len(runs_of_plan(ledger, digest_of(plan))) == 1


def test_a_run_that_was_refused_is_no_obstacle(ledger: Ledger) -> None:
    plan = make_plan([unload_step()])
    started(ledger, plan).end("refused", "")
    assert start_run(ledger, plan, approvals_of_plan(ledger, digest_of(plan))[0]).id == 2


def test_another_cluster_may_have_its_own_run(ledger: Ledger) -> None:
    started(ledger, PLAN)
    elsewhere = PLAN.identity.model_copy(update={"cluster_name": "elsewhere"})
    assert started(ledger, make_plan([unload_step()], identity=elsewhere)).id == 2


def test_whoever_lost_the_lease_can_not_write(ledger: Ledger, time: FakeTime) -> None:
    old = started(ledger, PLAN)
    time.pass_s(181)
    new = take_over(ledger, runs_of_plan(ledger, DIGEST)[0], approvals_of_plan(ledger, DIGEST)[0])
    with pytest.raises(LeaseLost, match="aborted or taken over"):
        old.sent("step-001", "PUT …", None)
    new.sent("step-001", "PUT …", None)
    assert new.steps()["step-001"].attempts == 1


def test_only_one_of_two_takes_a_run_over(ledger: Ledger, time: FakeTime) -> None:
    started(ledger, PLAN)
    time.pass_s(181)
    (abandoned,) = runs_of_plan(ledger, DIGEST)
    take_over(ledger, abandoned, approvals_of_plan(ledger, DIGEST)[0])
    with pytest.raises(Refused, match="somebody else has just"):
        take_over(ledger, abandoned, approvals_of_plan(ledger, DIGEST)[0])


def test_a_heartbeat_keeps_the_lease(ledger: Ledger, time: FakeTime) -> None:
    run = started(ledger, PLAN)
    time.pass_s(170)
    run.renew()
    time.pass_s(170)
    with pytest.raises(Refused, match="last active 170 s ago"):
        take_over(ledger, runs_of_plan(ledger, DIGEST)[0], approvals_of_plan(ledger, DIGEST)[0])


def test_a_holder_that_renews_its_lease_while_another_makes_up_its_mind_keeps_the_run(
    ledger: Ledger, time: FakeTime
) -> None:
    run = started(ledger, PLAN)
    (as_read,) = runs_of_plan(ledger, DIGEST)
    time.pass_s(170)
    run.renew()
    time.pass_s(20)
    with pytest.raises(Refused, match="somebody else has just"):
        take_over(ledger, as_read, approvals_of_plan(ledger, DIGEST)[0])
    run.sent("step-001", "PUT …", None)


def test_a_clock_that_was_set_back_does_not_silence_the_holder(ledger: Ledger, time: FakeTime) -> None:
    run = started(ledger, PLAN)
    time.set_ahead_s = -3600
    run.renew()
    assert runs_of_plan(ledger, DIGEST)[0].heartbeat_at_ms == time.now_ms()


def test_a_holder_stays_alive_while_it_waits(ledger: Ledger, time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_run, "_RENEW_MS", 1)
    run = started(ledger, PLAN)
    renewed = threading.Event()
    monkeypatch.setattr(run, "renew", renewed.set)
    with run.kept():
        assert renewed.wait(10)


@pytest.mark.parametrize(
    ("holder", "held"),
    [
        (this_process(), True),
        (replace(this_process(), id=2**22), False),
        (replace(this_process(), began="0"), False),
        (replace(this_process(), id=2**22, namespace="another boot pid:[1]"), True),
        (replace(this_process(), id=2**22, namespace=""), True),
    ],
    ids=["alive", "ended", "its id was given away", "in another PID namespace", "of an earlier release"],
)
def test_a_run_is_free_at_once_only_if_its_process_has_certainly_ended(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, holder: Process, held: bool
) -> None:
    monkeypatch.setattr(held_run, "this_process", lambda: holder)
    started(ledger, PLAN)
    assert is_held(ledger, runs_of_plan(ledger, DIGEST)[0]) == held


def test_a_run_names_whose_process_of_which_release_began_it_and_went_on_with_it(ledger: Ledger) -> None:
    started(ledger, PLAN).end("stopped", "paused")
    take_over(ledger, runs_of_plan(ledger, DIGEST)[0], approvals_of_plan(ledger, DIGEST)[0])
    details = [one.detail for one in ledger.events(DIGEST) if one.kind in ("run started", RESUMED)]
    assert [f" of {system_user()}, release {running_release()}, approved by bob" in detail for detail in details] == [
        True
    ] * 2


def test_a_stopped_run_can_not_go_on_while_another_is_active(ledger: Ledger) -> None:
    started(ledger, PLAN).end("stopped", "drifted")
    started(ledger, make_plan([unload_step()], seed=1))
    with pytest.raises(Refused, match="run 2 of plan"):
        take_over(ledger, runs_of_plan(ledger, DIGEST)[0], approvals_of_plan(ledger, DIGEST)[0])


def test_no_run_rests_on_an_approval_that_was_withdrawn_meanwhile(ledger: Ledger) -> None:
    stopped = started(ledger, PLAN)
    stopped.end("stopped", "")
    approval = approvals_of_plan(ledger, DIGEST)[0]
    withdraw(ledger, DIGEST, BOB)
    with pytest.raises(Refused, match="the approval of bob was withdrawn"):
        take_over(ledger, run_by_id(ledger, stopped.id), approval)
    with pytest.raises(Refused, match="the approval of bob was withdrawn"):
        start_run(ledger, make_plan([unload_step()], seed=1), approval)
