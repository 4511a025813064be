"""Whatever the clocks show and wherever a process dies, a call is sent once; waves keep to what may be together."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Override, Reply, Split, Unload
from pulsar_advisor.execution.ledger import held_run
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.held_run import HeldRun, start_run, take_over
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.tables import Hold
from pulsar_advisor.execution.run.executor import _topic_to_look_up
from pulsar_advisor.execution.run.preconditions import boundaries_after
from pulsar_advisor.execution.run.steering import before_resuming
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans import sealed as plans
from pulsar_advisor.model.plans.plan import Step, StepPrediction
from pulsar_advisor.model.plans.sealed import digest_of, seal
from unit.execution.actors import FOUR_EYES, approved, carried_out, killed_at_work, run, states
from unit.execution.doubles import (
    B1,
    B2,
    B3,
    BASKETS,
    CUT,
    LOWER,
    MOVE,
    NAMESPACE,
    UPPER,
    FakeCluster,
    make_plan,
    split_step,
    unload_step,
    wide_plan,
    widen,
)

BUNDLE = f"{NAMESPACE}/{LOWER}"


def test_however_many_steps_a_plan_has_their_rows_are_read_once_and_it_is_not_hashed_for_each(
    ledger: Ledger, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = approved(ledger, wide_plan())
    rows, sealed = Mock(wraps=steps_of_run), Mock(wraps=seal)
    monkeypatch.setattr(held_run, "steps_of_run", rows)
    monkeypatch.setattr(plans, "seal", sealed)
    hashed: list[int] = []
    cluster.on_event = lambda _what: hashed.append(sealed.call_count)
    assert run(plan, ledger, widen(cluster)).outcome == "done"
    assert rows.call_count == 1
    assert len(set(hashed)) == 1


def test_a_resumed_step_waits_its_whole_time_though_the_clock_is_ahead(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    cluster.effect_after_s = 60.0
    killed_at_work(ledger, cluster, plan)
    cluster.time.set_ahead_s = 300
    assert run(plan, ledger, cluster, resume=True).outcome == "done"
    assert (len(cluster.writes), cluster.effects) == (1, [BUNDLE])


def test_a_call_that_died_with_its_process_is_sent_once_more_and_counts_once_against_its_destination(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    move = unload_step(1, predicted=StepPrediction(brokers={B1: 0.4, B2: 0.6}))
    plan = approved(ledger, make_plan([move]), consents=())
    cluster.usage = {B2: 0.2}
    killed_at_work(ledger, cluster, plan, "before the call")
    cluster.time.pass_s(181)
    assert run(plan, ledger, cluster, resume=True).outcome == "done"
    assert cluster.effects == [BUNDLE]


@pytest.mark.parametrize(
    ("step", "seen"), [(MOVE, f"the bundle is still on {B1}"), (CUT, "the boundaries have not changed")]
)
def test_a_call_without_effect_says_so_where_the_run_then_ends(
    ledger: Ledger, cluster: FakeCluster, step: Step, seen: str
) -> None:
    plan = approved(ledger, make_plan([step]))
    killed_at_work(ledger, cluster, plan, "before the call")
    cluster.time.pass_s(181)
    [shown] = run(plan, ledger, cluster, resume=True, probe=lambda: "no acknowledgement").steps
    assert (shown.state, shown.detail) == ("unresolved", f"{seen}: it is sent again if the run goes on")
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


def test_a_resumed_step_waits_as_long_as_the_brokers_take(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    cluster.unloading_timeout_s = lambda: 240.0  # type: ignore[method-assign]
    cluster.effect_after_s = 200.0
    killed_at_work(ledger, cluster, plan)
    cluster.time.set_ahead_s = 300
    assert run(plan, ledger, cluster, resume=True).outcome == "done"
    assert len(cluster.writes) == 1


def test_a_single_wrong_answer_is_no_drift(ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.mistaken_once("owned_bundles", frozenset)
    assert carried_out(ledger, cluster, MOVE).outcome == "done"


@pytest.mark.parametrize("lost", [True, False], ids=["lost answer", "answered"])
def test_a_clock_that_is_set_back_in_mid_run_prolongs_no_wait(ledger: Ledger, cluster: FakeCluster, lost: bool) -> None:
    cluster.replies, cluster.fails = [Reply(None if lost else 500, "")] * 3, True
    cluster.on_event = lambda what: setattr(cluster.time, "set_ahead_s", -3 * 3600)
    began_ms = cluster.time.ms
    carried_out(ledger, cluster, MOVE)
    assert cluster.time.ms - began_ms < 10 * 60_000


def test_topics_that_never_show_are_not_waited_for_because_a_clock_was_set_back(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    run(plan, ledger, cluster)
    undo = propose_undo(plan, ledger, cluster)
    cluster.time.set_ahead_s = -240
    cluster.all_topics.clear()
    began_ms = cluster.time.ms
    with pytest.raises(Refused, match="no topic of the bundle is loaded"):
        run(approved(ledger, undo), ledger, cluster)
    assert cluster.time.ms - began_ms < 5 * 60_000


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("b", "a", "__change_events"), "a"),
        (("a\0", "..", ".", "z"), "z"),
        (("\x01", "\u200b", "b"), "b"),
        (("\x01", "a\0"), "\x01"),
        (("a\0", ".."), None),
    ],
)
def test_the_topic_to_look_up_can_be_recorded_and_asked_for(names: tuple[str, ...], chosen: str | None) -> None:
    found = _topic_to_look_up(tuple(f"persistent://t/n/{name}" for name in names))
    assert found == (None if chosen is None else f"persistent://t/n/{chosen}")


def test_a_ledger_time_in_the_future_is_refused(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    killed_at_work(ledger, cluster, plan)
    cluster.time.set_ahead_s = -240
    with pytest.raises(Refused, match="run 1 is 4 min in the future: the clock of the machine that keeps the ledger"):
        run(plan, ledger, cluster, resume=True)
    assert cluster.writes == cluster.writes[:1]
    assert cluster.owners[BUNDLE] in (B1, B2)


def test_a_caller_that_is_not_tried_again_waits_for_the_lease_and_goes_on(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    killed_at_work(ledger, cluster, plan, "before the call")
    began_ms = cluster.time.ms
    assert run(plan, ledger, cluster, resume=True, wait_for_holder=True).outcome == "done"
    assert cluster.time.ms - began_ms >= 180_000


def test_a_caller_that_waits_for_the_lease_goes_on_though_the_ledgers_clock_is_set_back_a_little(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    """The run's last heartbeat is in the future then, so its lease lasts that much longer."""
    plan = approved(ledger, make_plan([MOVE]))
    killed_at_work(ledger, cluster, plan, "before the call")
    cluster.time.set_ahead_s = -20
    assert run(plan, ledger, cluster, resume=True, wait_for_holder=True).outcome == "done"


def test_a_caller_that_is_to_end_while_it_waits_for_that_ends(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    killed_at_work(ledger, cluster, plan, "before the call")
    began_ms = cluster.time.ms
    with pytest.raises(Refused, match="nothing was sent: ended by SIGTERM"):
        run(plan, ledger, cluster, resume=True, wait_for_holder=True, interruption=lambda: "ended by SIGTERM")
    assert cluster.time.ms == began_ms


def test_a_caller_that_waited_for_a_run_that_was_carried_out_has_nothing_to_do(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    killed_at_work(ledger, cluster, plan, "before the call")
    (held,) = runs_of_plan(ledger, digest_of(plan))
    other = HeldRun(ledger, held)
    other.conclude(MOVE.id, "confirmed", "")

    def sleep(_seconds: float) -> None:
        other.end("done", "1 of 1 steps confirmed")

    result = run(plan, ledger, cluster, sleep=sleep, resume=True, wait_for_holder=True)
    assert result.outcome == "nothing_to_do"


def test_a_caller_that_waited_for_a_run_that_sent_nothing_begins_one(ledger: Ledger, cluster: FakeCluster) -> None:
    """As a worker that Airflow stops before its first call, while the next try waits for it."""
    plan = approved(ledger, make_plan([MOVE]))
    other = start_run(ledger, plan, approvals_of_plan(ledger, digest_of(plan))[0])

    def sleep(seconds: float) -> None:
        cluster.time.pass_s(seconds)
        if runs_of_plan(ledger, digest_of(plan))[-1].id == other.id:
            other.end("refused", "nothing was sent: the task was stopped in Airflow")

    assert run(plan, ledger, cluster, sleep=sleep, resume=True, wait_for_holder=True).outcome == "done"


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_caller_that_waited_leaves_a_run_to_whoever_went_on_with_it_and_stopped_it(
    ledger: Ledger, cluster: FakeCluster, is_alive: bool
) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    held: list[Hold] = []
    killed_at_work(ledger, cluster, plan, "before the call", on_held=held.append)

    def in_a_shell(_seconds: float = 0.0) -> None:
        cluster.time.pass_s(181)
        [crashed] = runs_of_plan(ledger, digest_of(plan))
        shell = take_over(ledger, crashed, approvals_of_plan(ledger, digest_of(plan))[0])
        shell.end("stopped", "0 of 1 steps confirmed: ended by SIGINT")

    if not is_alive:
        in_a_shell()
    options = {"resume": True, "wait_for_holder": True, "last_held": held[-1]}
    with pytest.raises(Refused, match=r"run 1 of .* is stopped: .*ended by SIGINT"):
        run(plan, ledger, cluster, sleep=in_a_shell, **options)
    assert cluster.owners[BUNDLE] == B1


def test_a_process_that_was_suspended_before_its_call_finds_out_that_it_was_overtaken(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE]))

    def suspend(line: str) -> None:
        if line.startswith("step-001: PUT"):
            cluster.time.pass_s(181)
            take_over(ledger, runs_of_plan(ledger, digest_of(plan))[0], approvals_of_plan(ledger, digest_of(plan))[0])

    result = run(plan, ledger, cluster, progress=suspend)
    assert "taken over by another process: this one stops" in result.sentence
    assert cluster.writes == []


@pytest.fixture
def wide(cluster: FakeCluster) -> FakeCluster:
    """A cluster that answers before a bundle has its new owner, so that several can be on their way."""
    cluster.answers_first, cluster.effect_after_s = True, 0.7
    return widen(cluster)


def calls(cluster: FakeCluster) -> list[str]:
    return [f"{write.namespace}/{write.bundle}" for write in cluster.writes]


def test_the_canary_goes_first_then_waves_of_what_may_be_together(ledger: Ledger, wide: FakeCluster) -> None:
    plan = approved(ledger, wide_plan())
    began_ms = wide.time.ms
    assert run(plan, ledger, wide, in_flight=3, pause_s=10.0, canary_hold_s=60.0).outcome == "done"
    assert calls(wide) == [f"{BASKETS}/{LOWER}", BUNDLE, f"{NAMESPACE}/{UPPER}", f"{BASKETS}/{UPPER}"]
    kinds = [(event.kind, event.step_id) for event in ledger.events(digest_of(plan))]
    of_the_wave = [kind for kind, step in kinds if step in ("step-001", "step-002")]
    assert of_the_wave == ["step sent", "reply"] * 2 + ["step confirmed"] * 2
    assert 80 <= (wide.time.ms - began_ms) / 1000 < 90  # the canary's time and two pauses


def test_a_step_of_a_wave_that_fails_does_not_end_the_others_in_flight(ledger: Ledger, wide: FakeCluster) -> None:
    plan = approved(ledger, wide_plan())
    wide.lands_on = lambda unload: None if unload.bundle == LOWER and unload.namespace == NAMESPACE else B3
    result = run(plan, ledger, wide, in_flight=3, error_budget=0)
    assert states(ledger, plan) == ["failed", "confirmed", "confirmed", "pending"]
    assert "1 step failed, and the error budget is 0" in result.sentence


def refuse_after(cluster: FakeCluster, calls: int) -> None:
    """Have the cluster refuse the call that comes after these, and do nothing for it."""
    original = cluster.send

    def send(write: Unload | Split | Override) -> Reply:
        if len(cluster.writes) == calls:
            cluster.replies, cluster.fails = [Reply(409, "not active")], True
        return original(write)

    cluster.send = send  # type: ignore[method-assign]


def test_a_step_in_flight_is_finished_and_no_other_is_begun_once_a_run_must_end(
    ledger: Ledger, wide: FakeCluster
) -> None:
    plan = approved(ledger, wide_plan())
    wide.lands_on = lambda unload: None if unload.bundle == LOWER and unload.namespace == NAMESPACE else B3
    refuse_after(wide, calls=2)
    result = run(plan, ledger, wide, in_flight=3, error_budget=0)
    assert states(ledger, plan) == ["failed", "failed", "confirmed", "pending"]
    assert "1 step failed, and the error budget is 0; the last: refused by the cluster: 409" in result.sentence
    assert f"2 steps failed, and the error budget is 0; the last: the bundle is on {B1}, after 3" in result.sentence
    assert calls(wide).count(BUNDLE) == 3


def test_a_run_that_several_failures_end_goes_on_after_what_they_need(ledger: Ledger, wide: FakeCluster) -> None:
    plan = approved(ledger, wide_plan())
    wide.lands_on = lambda unload: None if unload.bundle == LOWER and unload.namespace == NAMESPACE else B3
    refuse_after(wide, calls=2)
    result = run(plan, ledger, wide, in_flight=3, error_budget=0)
    first = before_resuming(plan, ledger, FOUR_EYES, result)
    assert first == ", once it is approved again with a larger --error-budget"


def test_a_run_slows_down_on_trouble_and_says_so(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, unload_step(2, UPPER, B1, B3), unload_step(3, LOWER, B2, B3)]))
    cluster.on_event = lambda what: (
        cluster.replies.append(Reply(503, "busy")) if what == "before the call" and len(cluster.writes) == 1 else None
    )
    lines: list[str] = []
    run(plan, ledger, cluster, progress=lines.append, pause_s=10.0)
    why = "1 step in flight, 20 s between two waves: step-002 got answer 503 busy"
    assert f"slowing down to {why}" in lines
    [event] = [event for event in ledger.events(digest_of(plan)) if event.kind == "slowed down"]
    assert (event.step_id, event.detail) == ("step-002", why)


def test_two_bundles_of_an_anti_affinity_group_do_not_go_to_one_broker_together(
    ledger: Ledger, wide: FakeCluster
) -> None:
    first = unload_step(1, LOWER, B1, B3)
    basket = unload_step(2, UPPER, B1, B3, namespace=BASKETS)
    canary = unload_step(
        3, LOWER, B2, B1, namespace=BASKETS, expect=first.expect.model_copy(update={"owner": B2, "topics": 1})
    )
    wide.anti_affinity_peers = lambda namespace: frozenset({NAMESPACE, BASKETS}) - {namespace}  # type: ignore[method-assign]
    plan = approved(ledger, make_plan([first, basket, canary]))
    wide.owners[f"{NAMESPACE}/{UPPER}"] = B2  # so that the canary changes nothing for the group
    result = run(plan, ledger, wide, in_flight=3)
    assert states(ledger, plan)[:2] == ["confirmed", "pending"]
    assert "of the same anti-affinity group" in result.sentence


def test_a_bundle_on_its_way_to_a_source_makes_no_room_for_its_anti_affinity_group(
    ledger: Ledger, wide: FakeCluster
) -> None:
    leaving = unload_step(3, UPPER, B1, B3)
    expect = leaving.expect.model_copy(update={"owner": B2, "topics": 1})
    canary = unload_step(1, UPPER, B2, B3, namespace=BASKETS, expect=expect)
    basket = unload_step(2, LOWER, B2, B1, namespace=BASKETS)
    wide.anti_affinity_peers = lambda namespace: frozenset({NAMESPACE, BASKETS}) - {namespace}  # type: ignore[method-assign]
    wide.owners |= {f"{NAMESPACE}/{LOWER}": B2, f"{BASKETS}/{UPPER}": B2}
    wide.answers_first, wide.effect_after_s = True, 3.0
    plan = approved(ledger, make_plan([canary, basket, leaving]))
    result = run(plan, ledger, wide, in_flight=3)
    assert states(ledger, plan) == ["confirmed", "confirmed", "pending"]
    assert "of the same anti-affinity group" in result.sentence


@pytest.mark.parametrize("in_flight", [1, 3])
def test_an_interrupted_wave_is_watched_to_its_end(ledger: Ledger, wide: FakeCluster, in_flight: int) -> None:
    plan = approved(ledger, wide_plan())
    result = run(
        plan,
        ledger,
        wide,
        interruption=lambda: "ended by SIGTERM" if len(wide.writes) == 3 else None,
        in_flight=in_flight,
    )
    assert states(ledger, plan) == ["confirmed", "confirmed", "confirmed", "pending"]
    assert result.sentence == "3 of 4 steps confirmed: ended by SIGTERM"
    assert run(plan, ledger, wide, resume=True, in_flight=in_flight).outcome == "done"


def split_and_unloads(first: int) -> list[Step]:
    """A split and the unloads of its children, numbered from `first`."""
    cut = split_step(first)
    boundaries = boundaries_after(MOVE.expect.boundaries, NAMESPACE, [cut])
    expect = MOVE.expect.model_copy(update={"boundaries": boundaries})
    later = enumerate(cut.children, first + 1)
    return [cut, *(unload_step(number, child, B1, B2, after=(cut.id,), expect=expect) for number, child in later)]


@pytest.mark.parametrize("in_flight", [1, 3])
def test_the_children_of_a_split_are_unloaded_once_it_is_confirmed(
    ledger: Ledger, cluster: FakeCluster, in_flight: int
) -> None:
    plan = approved(ledger, make_plan(split_and_unloads(1)))
    assert run(plan, ledger, cluster, in_flight=in_flight).outcome == "done"
    assert [cluster.owners[f"{NAMESPACE}/{child}"] for child in plan.steps[0].children] == [B2, B2]
    assert calls(cluster)[0] == f"{NAMESPACE}/{UPPER}"


def test_the_children_of_a_split_that_did_not_happen_are_left_alone(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, *split_and_unloads(2)]))
    cluster.on_event = lambda what: (
        cluster.replies.append(Reply(412, "invalid")) if what == "before the call" and cluster.writes else None
    )
    cluster.fails = True
    assert run(plan, ledger, cluster).exit_code == 5
    assert states(ledger, plan) == ["confirmed", "failed", "skipped", "skipped"]


def test_a_step_of_a_wave_is_not_sent_once_the_one_before_it_ends_the_run(ledger: Ledger, wide: FakeCluster) -> None:
    plan = approved(ledger, wide_plan())
    refuse_after(wide, calls=1)
    result = run(plan, ledger, wide, in_flight=3, error_budget=0)
    assert states(ledger, plan) == ["failed", "pending", "confirmed", "pending"]
    assert "1 step failed, and the error budget is 0; the last: refused by the cluster: 409" in result.sentence


def test_a_step_is_not_sent_once_another_ends_the_run_while_its_bundle_is_looked_at_again(
    ledger: Ledger, wide: FakeCluster
) -> None:
    plan, right, mistaken = approved(ledger, wide_plan()), wide.boundaries, iter([True])

    def boundaries(namespace: str) -> tuple[str, ...]:
        is_first_look = namespace == NAMESPACE and len(wide.writes) == 1
        return () if is_first_look and next(mistaken, False) else right(namespace)

    wide.boundaries = boundaries  # type: ignore[method-assign]
    refuse_after(wide, calls=1)
    run(plan, ledger, wide, in_flight=3, error_budget=0)
    assert states(ledger, plan) == ["pending", "failed", "confirmed", "pending"]
    assert next(mistaken, False) is False, "it looked once"
