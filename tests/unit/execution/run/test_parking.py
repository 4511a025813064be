"""A run that is parked waits without a process, keeps its cluster, and repeats no call when it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pulsar_advisor.documents.document import as_json
from pulsar_advisor.execution.consent.approval import withdraw
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import pause_requested
from pulsar_advisor.execution.ledger.runs import end_unheld_run, run_by_id
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.run.end_of_run import AttemptResult
from pulsar_advisor.execution.run.pace import Pace
from pulsar_advisor.execution.run.parking import Parking, parking_of
from pulsar_advisor.execution.run.steering import abort, go_on, pause
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE, approved, killed_at_work, run
from unit.execution.doubles import (
    B1,
    B2,
    LOWER,
    NAMESPACE,
    UPPER,
    FakeCluster,
    make_plan,
    unload_step,
    wide_plan,
    widen,
)

BUNDLE = f"{NAMESPACE}/{LOWER}"
LONG = {"park_from_s": 60.0, "canary_hold_s": 60.0, "pause_s": 60.0}


@pytest.fixture
def plan(ledger: Ledger) -> Plan:
    return approved(ledger, make_plan([unload_step(1), unload_step(2, bundle=UPPER)]))


def legs(plan: Plan, ledger: Ledger, cluster: FakeCluster, **options: Any) -> Iterator[AttemptResult]:
    """Apply a plan, and go on from each wait after its time, as the triggerer does."""
    waited = None
    while True:
        last_held = None if waited is None else waited.hold
        options |= {"waited": waited, "last_held": last_held, "resume": waited is not None}
        result = run(plan, ledger, cluster, **{**LONG, **options})
        yield result
        if result.parking is None:
            return
        cluster.time.pass_s(result.parking.wait_s)
        waited = parking_of(as_json(result.parking))


def wait_of(result: AttemptResult) -> Parking:
    """The wait of a run that is parked."""
    assert result.parking is not None
    return result.parking


def test_a_run_that_parked_for_its_hold_goes_on_with_wider_waves(ledger: Ledger, cluster: FakeCluster) -> None:
    first, second, canary, cut = wide_plan().steps
    plan = approved(ledger, make_plan([canary, first, second, cut]))
    widen(cluster)
    assert list(legs(plan, ledger, cluster, in_flight=2, pause_s=3.0))[-1].outcome == "done"
    sent = [event for event in ledger.events(digest_of(plan)) if event.kind == "step sent"]
    assert sent[1].at_ms == sent[2].at_ms


def test_a_run_parks_for_its_hold_and_its_pauses_and_sends_each_call_once(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    results = list(legs(plan, ledger, cluster))
    assert [wait_of(result).why for result in results[:-1]] == ["hold", "pause"]
    assert results[-1].outcome == "done"
    assert len(cluster.writes) == 2
    assert {record.attempts for record in steps_of_run(ledger, results[-1].run or 0).values()} == {1}


def test_a_short_wait_is_waited_by_the_process(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    results = list(legs(plan, ledger, cluster, canary_hold_s=30.0, pause_s=10.0))
    assert [result.outcome for result in results] == ["done"]


def test_without_being_asked_to_a_run_never_parks(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    results = list(legs(plan, ledger, cluster, park_from_s=None))
    assert [result.outcome for result in results] == ["done"]


def test_a_run_that_keeps_the_balancer_off_is_not_left_without_a_process(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    results = list(legs(plan, ledger, cluster, guard=True))
    assert [result.outcome for result in results] == ["done"]


@pytest.mark.parametrize(("calls", "waits"), [(1, 0), (2, 2)], ids=["before its hold", "before its second pause"])
def test_a_run_that_is_to_end_does_not_park_instead(
    ledger: Ledger, cluster: FakeCluster, calls: int, waits: int
) -> None:
    plan = approved(ledger, wide_plan())
    widen(cluster)
    stopped = {"interruption": lambda: "the task was stopped in Airflow" if len(cluster.writes) == calls else None}
    results = list(legs(plan, ledger, cluster, **stopped))
    assert [result.outcome for result in results] == ["parked"] * waits + ["partial"]


def test_a_parked_run_keeps_others_off_its_cluster(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    next(legs(plan, ledger, cluster))
    other = approved(ledger, make_plan([unload_step(1)], seed=7))
    with pytest.raises(Refused, match="is parked on cluster"):
        run(other, ledger, cluster)


def test_a_first_step_that_does_not_stay_while_the_run_is_parked_has_failed(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    walk = legs(plan, ledger, cluster)
    next(walk)
    cluster.owners[BUNDLE] = B1
    result = next(walk)
    assert (result.outcome, result.steps[0].state) == ("partial", "failed")
    assert "did not stay" in result.sentence
    assert len(cluster.writes) == 1


def test_a_crash_after_the_wait_waits_the_whole_time_again(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    next(legs(plan, ledger, cluster))
    again = run(plan, ledger, cluster, resume=True, **LONG)
    assert wait_of(again) == Parking("hold", 60.0, hold=(1, 2))
    assert len(cluster.writes) == 1


def test_a_wait_counts_no_more_once_another_process_has_sent_calls(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, wide_plan())
    widen(cluster)
    walk = legs(plan, ledger, cluster)
    next(walk)
    assert wait_of(next(walk)).why == "pause"
    killed_at_work(ledger, cluster, plan, "after the call", resume=True, **{**LONG, "park_from_s": None})
    cluster.time.pass_s(181)
    assert wait_of(next(walk)).why == "pause"
    assert len(cluster.writes) == 2


def test_a_run_that_a_person_resumed_and_stopped_meanwhile_stays_stopped(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    walk = legs(plan, ledger, cluster)
    next(walk)
    ended = run(plan, ledger, cluster, resume=True, interruption=lambda: "ended by SIGINT", **LONG)
    assert ended.outcome == "partial"
    with pytest.raises(Refused, match=r"is stopped: .*ended by SIGINT"):
        next(walk)
    assert len(cluster.writes) == 1


def test_a_run_that_another_task_has_parked_again_is_left_to_it(
    ledger: Ledger, cluster: FakeCluster, plan: Plan
) -> None:
    walk = legs(plan, ledger, cluster)
    next(walk)
    other = wait_of(run(plan, ledger, cluster, resume=True, **LONG))
    with pytest.raises(Refused, match="is active"):
        next(walk)
    result = run(plan, ledger, cluster, resume=True, waited=other, last_held=other.hold, **LONG)
    assert (wait_of(result).why, result.steps[0].state) == ("pause", "confirmed")


def test_a_paused_run_is_parked_until_its_pause_is_lifted(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    cluster.once("after the call", lambda: pause(ledger, plan, ALICE))
    walk = legs(plan, ledger, cluster, canary_hold_s=0.0, pause_s=0.0)
    parked = next(walk)
    assert wait_of(parked) == Parking("request", 0, hold=(1, 1))
    assert pause_requested(ledger, parked.run or 0) == "paused by alice (airflow)"
    go_on(ledger, plan, ALICE)
    assert pause_requested(ledger, parked.run or 0) is None
    assert next(walk).outcome == "done"
    assert cluster.owners[BUNDLE] == B2


def test_a_pause_that_comes_as_the_run_goes_on_is_not_lost(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    walk = legs(plan, ledger, cluster, canary_hold_s=0.0)
    assert wait_of(next(walk)) == Parking("pause", 60.0, Pace(1, 1, 0.0), hold=(1, 1))
    pause(ledger, plan, ALICE)
    assert wait_of(next(walk)) == Parking("request", 0, hold=(1, 2))
    assert len(cluster.writes) == 1


def test_what_is_not_paused_can_not_go_on(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    next(legs(plan, ledger, cluster))
    with pytest.raises(Refused, match="is paused"):
        go_on(ledger, plan, ALICE)


def test_a_parked_run_that_may_not_go_on_frees_its_cluster(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    walk = legs(plan, ledger, cluster)
    parked = next(walk)
    withdraw(ledger, digest_of(plan), ALICE)
    with pytest.raises(Refused, match="was withdrawn"):
        next(walk)
    assert run_by_id(ledger, parked.run or 0).state == "stopped"


def test_an_aborted_run_does_not_go_on(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    walk = legs(plan, ledger, cluster)
    next(walk)
    abort(ledger, plan, ALICE)
    with pytest.raises(Refused, match="was aborted"):
        next(walk)
    assert len(cluster.writes) == 1


def test_a_process_that_holds_a_run_keeps_it(ledger: Ledger, cluster: FakeCluster, plan: Plan) -> None:
    ends: list[str] = []
    cluster.on_event = lambda _what: (end_unheld_run(ledger, digest_of(plan), "over"), ends.append("tried"))[0]
    assert run(plan, ledger, cluster).outcome == "done"
    assert ends
