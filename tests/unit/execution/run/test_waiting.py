"""A run that is interrupted or paused ends after the steps in flight, and goes on later."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pulsar_advisor.execution.apply import apply_plan
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.run.options import Work
from pulsar_advisor.execution.run.steering import pause
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy
from pulsar_advisor.model.errors import ClusterUnreachable, Refused
from pulsar_advisor.model.plans.plan import Plan, Step
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import ALICE, BRISK, approved, killed_at_work, options_of, run
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    CUT,
    MOVE,
    START_MS,
    UPPER,
    FakeCluster,
    make_plan,
    split_step,
    unload_step,
    wide_plan,
    widen,
)


@pytest.mark.parametrize("what", ["before the call", "the broker is at work", "after the call"])
def test_an_interrupted_run_ends_once_its_step_in_flight_is_done_and_can_be_resumed(
    ledger: Ledger, cluster: FakeCluster, what: str
) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    seen: list[str] = []
    cluster.on_event = seen.append
    cluster.effect_after_s = 25.0
    began_ms = cluster.time.ms
    result = run(plan, ledger, cluster, interruption=lambda: "ended by SIGTERM" if what in seen else None)
    assert (result.exit_code, [step.state for step in result.steps]) == (5, ["confirmed", "pending"])
    assert result.sentence == "1 of 2 steps confirmed: ended by SIGTERM"
    assert cluster.time.ms - began_ms < 30_000  # neither the canary's time nor a pause
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


@pytest.mark.parametrize("behind_s", [0, 300])
def test_a_run_sends_nothing_after_its_time_of_day_and_can_be_resumed(
    ledger: Ledger, cluster: FakeCluster, behind_s: int
) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    until = datetime.fromtimestamp(cluster.time.ms / 1000 + 5, UTC)
    clock = replace(cluster.time.clock, now_ms=lambda: cluster.time.ms - 1000 * behind_s)
    result = apply_plan(plan, options_of(until=until), Work(ledger, cluster, lambda _line: None, clock))
    assert (result.exit_code, [step.state for step in result.steps]) == (5, ["confirmed", "pending"])
    assert f"it may send nothing after {until:%H:%M} UTC" in result.sentence
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


def test_a_run_sends_nothing_if_its_time_of_day_comes_while_it_looks(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    until = datetime.fromtimestamp(cluster.time.ms / 1000 + 5, UTC)

    def slowly() -> tuple[IsolationPolicy, ...]:
        cluster.time.pass_s(10)
        return ()

    cluster.isolation_policies = slowly  # type: ignore[method-assign]
    with pytest.raises(Refused, match=f"it may send nothing after {until:%H:%M} UTC"):
        run(plan, ledger, cluster, until=until)
    assert cluster.writes == []


def test_a_run_that_is_interrupted_before_its_first_call_sends_nothing(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    with pytest.raises(Refused, match="nothing was sent: ended by SIGTERM; start it again to go on"):
        run(plan, ledger, cluster, interruption=lambda: "ended by SIGTERM")
    assert cluster.writes == []
    assert run(plan, ledger, cluster).outcome == "done"


def test_an_unload_that_missed_its_destination_is_not_sent_again_by_an_interrupted_run(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    cluster.lands_on = lambda _unload: None
    result = run(plan, ledger, cluster, interruption=lambda: "ended by SIGTERM" if cluster.writes else None)
    assert (result.exit_code, len(cluster.writes)) == (5, 1)
    cluster.lands_on = lambda unload: unload.destination
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


def test_a_run_can_be_paused_from_elsewhere_and_goes_on_when_it_is_resumed(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.once("after the call", lambda: pause(ledger, plan, ALICE))
    result = run(plan, ledger, cluster)
    assert result.sentence == "1 of 2 steps confirmed: paused by alice (airflow)"
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


def test_only_a_person_who_goes_on_lifts_a_pause(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.once("after the call", lambda: pause(ledger, plan, ALICE))
    run(plan, ledger, cluster)
    again = run(plan, ledger, cluster, resume=True, lifts_pause=False)
    assert again.sentence == "1 of 2 steps confirmed: paused by alice (airflow)"
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


@pytest.mark.parametrize("is_second", [False, True], ids=["the first", "the second of one person"])
def test_a_resumption_lifts_no_pause_that_was_asked_for_since_it_began(
    ledger: Ledger, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, is_second: bool
) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    killed_at_work(ledger, cluster, plan)
    if is_second:
        pause(ledger, plan, ALICE)
    cluster.time.pass_s(181)

    def asked_at_the_last_moment(*_run: object) -> bool:
        return not pause(ledger, plan, ALICE)

    monkeypatch.setattr("pulsar_advisor.execution.ledger.held_run.is_held", asked_at_the_last_moment)
    result = run(plan, ledger, cluster, resume=True)
    assert result.sentence == "1 of 2 steps confirmed: paused by alice (airflow)"


def test_a_split_whose_hold_was_cut_short_holds_before_the_next_step_of_the_resumed_run(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([split_step(1), unload_step(2, after=("step-001",))]))
    cluster.once("after the call", lambda: pause(ledger, plan, ALICE))
    run(plan, ledger, cluster, canary_hold_s=60.0)
    assert run(plan, ledger, cluster, resume=True, canary_hold_s=60.0, pause_s=0.0).outcome == "done"
    first, second = sent_s(ledger, plan)
    assert second - first >= 60


def sent_s(ledger: Ledger, plan: Plan) -> list[float]:
    """Seconds from the beginning to each call."""
    sent = [event for event in ledger.events(digest_of(plan)) if event.kind == "step sent"]
    return [(event.at_ms - START_MS) / 1000 for event in sent]


def of_topics(step: Step, topics: int) -> Step:
    return step.model_copy(update={"expect": step.expect.model_copy(update={"topics": topics})})


LIMITED = {"topics_per_minute": 100, "pause_s": 10.0, "canary_hold_s": 0.0}
LARGE = make_plan([of_topics(unload_step(1), 1000), of_topics(unload_step(2, UPPER), 1000)])


def test_a_resumed_run_waits_for_the_topics_that_were_unloaded_before(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, LARGE)
    run(plan, ledger, cluster, interruption=lambda: "ended by SIGTERM" if cluster.writes else None, **LIMITED)
    cluster.time.pass_s(200)
    assert run(plan, ledger, cluster, resume=True, **LIMITED).outcome == "done"
    assert sent_s(ledger, plan) == [0, 600]


def test_the_run_of_another_plan_waits_for_the_topics_that_were_unloaded_before(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    first = approved(ledger, make_plan([of_topics(unload_step(1), 60)]))
    run(first, ledger, cluster, **LIMITED)
    cluster.time.pass_s(20)
    second = approved(ledger, make_plan([of_topics(unload_step(1, UPPER), 60)]))
    assert run(second, ledger, cluster, **LIMITED).outcome == "done"
    assert [*sent_s(ledger, first), *sent_s(ledger, second)] == [0, 60]


@pytest.mark.parametrize("arrives", [True, False])
def test_a_pause_that_outlasts_the_approval_is_not_waited_for(
    ledger: Ledger, cluster: FakeCluster, arrives: bool
) -> None:
    plan = approved(ledger, LARGE)
    cluster.lands_on = lambda unload: unload.destination if arrives else None
    began_ms = cluster.time.ms
    result = run(plan, ledger, cluster, **{**LIMITED, "topics_per_minute": 2})
    assert (result.exit_code, cluster.time.ms - began_ms < 60_000) == (5, True)
    assert "the next call has to wait 30000 s, and by then the approval of bob has expired" in result.sentence


def test_each_attempt_of_an_unload_waits_for_the_topics_of_the_one_before(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, LARGE)
    cluster.lands_on = lambda _unload: None
    run(plan, ledger, cluster, **LIMITED)
    first, second, third = sent_s(ledger, plan)
    assert (second - first, third - second) >= (600, 600)


def topics_of_fullest_minute(ledger: Ledger, plan: Plan) -> int:
    """The most topics that the run's calls unloaded in any minute."""
    steps = {step.id: step for step in plan.executable_steps}
    sent = [event for event in ledger.events(digest_of(plan)) if event.kind == "step sent"]
    unloaded = [(event.at_ms, steps[event.step_id].expect.topics) for event in sent if event.step_id]
    return max(sum(topics for at_ms, topics in unloaded if 0 <= at_ms - from_ms < 60_000) for from_ms, _ in unloaded)


def test_attempts_of_steps_in_flight_together_share_the_topics_per_minute(ledger: Ledger, cluster: FakeCluster) -> None:
    first, second, canary, _ = wide_plan().steps
    plan = approved(ledger, make_plan([canary, of_topics(first, 40), of_topics(second, 50)]))
    widen(cluster).lands_on = lambda unload: unload.destination if unload.namespace == canary.namespace else None
    run(plan, ledger, cluster, in_flight=2, error_budget=2, **LIMITED)
    assert len(cluster.writes) == 1 + 2 * 3
    assert topics_of_fullest_minute(ledger, plan) <= LIMITED["topics_per_minute"]


def test_a_large_bundle_waits_for_the_small_ones_of_its_minute(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([of_topics(unload_step(1), 20), of_topics(unload_step(2, UPPER), 90)]))
    assert run(plan, ledger, cluster, **LIMITED).outcome == "done"
    assert sent_s(ledger, plan) == [0, 60]


def test_a_step_that_is_left_out_takes_no_room_of_its_minute(ledger: Ledger, cluster: FakeCluster) -> None:
    small, large = of_topics(unload_step(1), 1), of_topics(unload_step(2, UPPER), 100)
    gone = of_topics(unload_step(3, UPPER, B3, B1), 100)
    plan = approved(ledger, make_plan([small, gone, large]))
    assert run(plan, ledger, cluster, on_drift="skip", **LIMITED).exit_code == 5
    assert sent_s(ledger, plan) == [0, 71]


def test_a_first_step_holds_its_whole_time_though_its_run_was_interrupted(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    run(plan, ledger, cluster, interruption=lambda: "ended by SIGTERM" if cluster.writes else None, pause_s=0.0)
    cluster.time.pass_s(2)
    assert run(plan, ledger, cluster, resume=True, pause_s=0.0).outcome == "done"
    assert sent_s(ledger, plan) == [0, BRISK.canary_hold_s]


def test_the_first_step_that_succeeds_holds_its_whole_time_though_its_run_was_interrupted(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, wide_plan())
    widen(cluster).lands_on = lambda _unload: None
    run(plan, ledger, cluster)
    failed = len(cluster.writes)
    cluster.lands_on = lambda unload: unload.destination
    sigterm = "ended by SIGTERM"
    run(plan, ledger, cluster, resume=True, interruption=lambda: sigterm if len(cluster.writes) > failed else None)
    run(plan, ledger, cluster, resume=True, pause_s=0.0)
    first, second, *_ = sent_s(ledger, plan)[failed:]
    assert second - first == BRISK.canary_hold_s


def test_a_first_step_that_held_its_time_is_not_waited_for_again(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    held_ms = cluster.time.ms + 1000 * BRISK.canary_hold_s
    run(
        plan,
        ledger,
        cluster,
        interruption=lambda: "ended by SIGTERM" if cluster.time.ms >= held_ms else None,
        pause_s=0.0,
    )
    assert run(plan, ledger, cluster, resume=True, pause_s=0.0).outcome == "done"
    assert sent_s(ledger, plan) == [0, BRISK.canary_hold_s]


@pytest.mark.parametrize("now_on", [B1, None])
def test_a_first_step_that_did_not_stay_ends_the_resumed_run(
    ledger: Ledger, cluster: FakeCluster, now_on: str | None
) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    run(plan, ledger, cluster, interruption=lambda: "ended by SIGTERM" if cluster.writes else None)
    del cluster.owners[MOVE.bundle_name]
    if now_on is not None:
        cluster.owners[MOVE.bundle_name] = now_on
    result = run(plan, ledger, cluster, resume=True)
    where = now_on or "no broker"
    assert f"step-001: the bundle did not stay where it was confirmed to be: it is on {where}" in result.sentence
    assert len(cluster.writes) == 1


def test_a_single_wrong_answer_is_no_departure(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = interrupted_in_hold(ledger, cluster)
    cluster.mistaken_once("owned_bundles", frozenset)
    assert run(plan, ledger, cluster, resume=True, pause_s=0.0).outcome == "done"


def test_there_must_be_something_to_pause(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    run(plan, ledger, cluster)
    with pytest.raises(Refused, match="there is nothing to pause"):
        pause(ledger, plan, ALICE)


def interrupted_in_hold(ledger: Ledger, cluster: FakeCluster) -> Plan:
    """A plan whose run was interrupted right after its first call, before the step had held its time."""
    plan = approved(ledger, make_plan([MOVE, CUT]))
    run(plan, ledger, cluster, interruption=lambda: "ended by SIGTERM" if cluster.writes else None, pause_s=0.0)
    return plan


def test_a_first_step_that_does_not_stay_through_the_rest_of_its_hold_ends_the_resumed_run(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = interrupted_in_hold(ledger, cluster)
    cluster.later(3.0, lambda: cluster.owners.update({MOVE.bundle_name: B3}))
    result = run(plan, ledger, cluster, resume=True, pause_s=0.0)
    assert f"step-001: the bundle reached {B2}, but did not stay: it is on {B3}" in result.sentence
    assert len(cluster.writes) == 1


def test_the_rest_of_a_hold_is_waited_for_though_the_owner_can_not_be_read(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = interrupted_in_hold(ledger, cluster)
    original, reads = cluster.owned_bundles, []

    def unreadable_at_first(broker: str) -> frozenset[str]:
        reads.append(broker)
        if len(reads) == 1:
            raise ClusterUnreachable("connection refused")
        return original(broker)

    cluster.owned_bundles = unreadable_at_first  # type: ignore[method-assign]
    assert run(plan, ledger, cluster, resume=True, pause_s=0.0).outcome == "done"
    assert sent_s(ledger, plan) == [0, BRISK.canary_hold_s]
