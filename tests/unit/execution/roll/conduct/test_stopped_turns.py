"""A turn that ended early is resumed, planned again or ended, and no call of it goes unnamed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Reply, Unload
from pulsar_advisor.execution.consent.turn import CarriedOnElsewhere
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.held_run import take_over
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import lift_pause_of_plan
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.rolls import record_end
from pulsar_advisor.execution.ledger.runs import abort_runs
from pulsar_advisor.execution.ledger.tables import Run
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.roll import conduct, steering
from pulsar_advisor.execution.roll.conduct import Roll, go_on
from pulsar_advisor.execution.roll.status import ended_early, status_of
from pulsar_advisor.execution.roll.steering import end, pause
from pulsar_advisor.execution.run.steering import abort
from pulsar_advisor.execution.run.steering import pause as pause_run
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.plan import Plan
from unit.execution.actors import approved, carried_out, run
from unit.execution.doubles import B1, B2, B3, BASKETS, NAMESPACE, UPPER, FakeCluster, Killed, unload_step
from unit.execution.roll.doubles import (
    OLIVE,
    RestartedCluster,
    die,
    ended,
    go_on_after,
    is_off,
    outcome,
    roll_of,
    state_of,
    stopped_turn,
)


def test_a_turn_that_an_earlier_release_began_without_a_plan_is_planned_again(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    detail = {"broker": B1, "plan": None, "started_at_ms": None, "moves": 0, "moves_in_all": 0}
    with ledger.writing() as session:
        ledger.add_event(session, roll.digest, "turn begun", json.dumps(detail))
        ledger.add_event(session, roll.digest, "broker drained", json.dumps({"broker": B1}))
    assert status_of(ledger, roll.plan).turns[0].plan is None
    cluster.restart(B1)
    go_on_after(roll, B1)
    assert (roll.look().recorded.restarted, is_off(cluster)) == ((B1,), [True, True])


def test_a_turn_whose_run_has_no_step_left_is_planned_again(roll: Roll, cluster: RestartedCluster) -> None:
    cluster.replies, cluster.fails = [Reply(409, "not active")] * 2, True
    assert [outcome(go_on(roll)) for _ in range(3)] == ["partial", "partial", "done"]
    assert (roll.look().state, cluster.owned_bundles(B1)) == ("drained", frozenset())


def test_a_run_whose_process_died_after_its_last_step_is_resumed(
    roll: Roll, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("pulsar_advisor.execution.ledger.held_run.HeldRun.end", lambda *_: die())
        go_on(roll)
    cluster.time.pass_s(181)
    assert outcome(go_on(roll)) == "done"
    assert len(roll.look().runs) == 1


def undo(roll: Roll, cluster: RestartedCluster) -> None:
    """What the roll's first turn has moved goes back."""
    run(approved(roll.ledger, propose_undo(roll.plan, roll.ledger, cluster)), roll.ledger, cluster)


def test_a_roll_whose_first_turn_was_undone_in_a_pause_goes_on(roll: Roll, cluster: RestartedCluster) -> None:
    go_on(roll)
    pause(roll.ledger, roll.plan, OLIVE)
    undo(roll, cluster)
    assert state_of(roll) == "applying"
    lift_pause_of_plan(roll.ledger, roll.digest, OLIVE)
    assert outcome(go_on(roll)) == "done"


def test_a_turn_that_stopped_and_was_undone_is_planned_again_when_somebody_says_so(
    roll: Roll, cluster: RestartedCluster
) -> None:
    cluster.whenever("after the call", lambda: cluster.brokers.discard(B2))
    assert outcome(go_on(roll)) == "partial"
    cluster.on_event = lambda _what: None
    cluster.brokers.add(B2)
    undo(roll, cluster)
    anew = f"`pulsar-advisor roll continue {short(roll.digest)} --anew` plans the turn again"
    with pytest.raises(Refused, match=f"has been undone since: {anew}"):
        go_on(roll)
    assert outcome(go_on(roll, anew=OLIVE)) == "done"
    assert state_of(roll) == "applying"


def test_a_turn_that_ended_early_is_for_a_person_until_its_pause_is_lifted(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    assert ended_early(ledger, roll.plan) is None
    cluster.once("after the call", lambda: pause(ledger, roll.plan, OLIVE))
    go_on(roll)
    assert "1 of 2 steps confirmed" in (ended_early(ledger, roll.plan) or "")
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    assert ended_early(ledger, roll.plan) is None


@pytest.fixture
def killed_in_its_second_turn(roll: Roll, cluster: RestartedCluster) -> Roll:
    """A roll whose process died while it drained the second broker, longer ago than its lease."""
    go_on(roll)
    cluster.restart(B1)
    cluster.once("before the call", die)
    with pytest.raises(Killed):
        go_on_after(roll, B1)
    cluster.time.pass_s(181)
    return roll


def test_what_to_do_about_a_turn_that_crashed_leads_to_its_roll(
    killed_in_its_second_turn: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    roll = killed_in_its_second_turn
    (_, turn) = roll.look().recorded.turns
    plan = recorded_plan(ledger, str(turn.plan))
    go_on_with = f"`pulsar-advisor roll continue {short(roll.digest)}` carries it out"
    with pytest.raises(Refused, match=f"plan {turn.plan} is active .*crashed, {go_on_with}"):
        carried_out(ledger, cluster, unload_step())
    with pytest.raises(Refused, match=f"the plan is a turn of the roll {roll.digest}: {go_on_with}"):
        run(plan, ledger, cluster, resume=True)
    with pytest.raises(Refused, match=f"{turn.plan} is a turn of the roll {roll.digest}: name the roll"):
        go_on(roll_of(plan, ledger, cluster))
    assert outcome(go_on(roll)) == "done"


def test_a_turn_whose_plan_was_exchanged_in_the_ledger_is_not_resumed(
    killed_in_its_second_turn: Roll, ledger: Ledger, cluster: RestartedCluster, tmp_path: Path
) -> None:
    roll = killed_in_its_second_turn
    (first, turn) = roll.look().recorded.turns
    sent = len(cluster.writes)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)) as forged:
        for (trigger,) in forged.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            forged.execute(f"DROP TRIGGER {trigger}")
        other = "(SELECT document FROM plans WHERE digest = ?)"
        forged.execute(f"UPDATE plans SET document = {other} WHERE digest = ?", (first.plan, turn.plan))
    with pytest.raises(Refused, match=f"holds as plan {turn.plan} is {first.plan}: it was exchanged; run"):
        go_on(roll)
    assert len(cluster.writes) == sent


@pytest.mark.parametrize("stopped_by", [abort, pause_run])
def test_who_would_stop_a_roll_like_a_plan_reads_how_rolls_are_stopped(
    killed_in_its_second_turn: Roll, stopped_by: Callable[[Ledger, Plan, Person], object]
) -> None:
    with pytest.raises(Refused, match=r"it is a roll, .* `roll pause` pauses it, `roll end` ends it"):
        stopped_by(killed_in_its_second_turn.ledger, killed_in_its_second_turn.plan, OLIVE)


def test_a_turn_that_is_ended_half_way_leaves_no_call_unnamed(killed_in_its_second_turn: Roll) -> None:
    lines: list[str] = []
    assert outcome(go_on(replace(killed_in_its_second_turn, progress=lines.append), anew=OLIVE)) == "done"
    (line,) = [line for line in lines if "the outcome of its call is unknown" in line]
    assert line.startswith("ATTENTION: step-001, ")


def test_planning_a_turn_again_ends_no_run_that_another_process_has_just_resumed(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_turn(roll, ledger, cluster)

    def resumed_before(*of: Any) -> Sequence[Run]:
        run = roll.look().runs[-1]
        take_over(ledger, run, approvals_of_plan(ledger, run.digest)[0])
        return abort_runs(*of)

    monkeypatch.setattr(conduct, "abort_runs", resumed_before)
    with pytest.raises(CarriedOnElsewhere, match="another process carries out a turn of the roll"):
        go_on(roll, anew=OLIVE)
    assert roll.look().runs[-1].state == "active"


def test_a_roll_that_is_ended_half_way_leaves_no_call_unnamed(killed_in_its_second_turn: Roll) -> None:
    roll = killed_in_its_second_turn
    (line,) = end(roll.ledger, roll.plan, OLIVE)
    assert line.startswith("ATTENTION: step-001, ")


def test_the_end_of_a_roll_ends_the_run_of_a_turn_that_began_at_that_moment(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended_once_a_turn_has_begun(*_end: object) -> None:
        stopped_turn(roll, ledger, cluster)
        record_end(ledger, roll.digest, "ended by olive")

    monkeypatch.setattr(steering, "record_end", ended_once_a_turn_has_begun)
    ended(roll)
    assert [run.state for run in roll.look().runs] == ["done", "aborted"]


def test_the_end_of_a_roll_is_repeated_if_its_process_died_before_the_turns_run_was_ended(
    killed_in_its_second_turn: Roll, monkeypatch: pytest.MonkeyPatch
) -> None:
    roll = killed_in_its_second_turn
    with monkeypatch.context() as dying, pytest.raises(Killed):
        dying.setattr(steering, "abort_runs", lambda *_run: die())
        ended(roll)
    ended(roll)
    assert [run.state for run in roll.look().runs] == ["done", "aborted"]


def test_a_stopped_turn_that_is_too_old_to_be_resumed_is_planned_again(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    stopped_turn(roll, ledger, cluster)
    cluster.time.pass_s(7 * 3600)
    assert outcome(go_on(roll)) == "done"
    assert [run.state for run in roll.look().runs] == ["done", "aborted", "done"]


def test_a_stopped_turn_whose_next_step_the_cluster_does_not_match_is_planned_again(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    """Each try to resume it would end as the last one did."""
    stopped_turn(roll, ledger, cluster)
    cluster.owners |= {f"{NAMESPACE}/{UPPER}": B3, f"{BASKETS}/{UPPER}": B2}
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, cluster.owned_bundles(B2)) == ("drained", frozenset())
    assert [run.state for run in roll.look().runs] == ["done", "aborted", "done"]


def test_a_stopped_turn_with_a_call_of_unknown_outcome_is_not_planned_again(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    stopped_turn(roll, ledger, cluster)
    cluster.replies, cluster.fails = [Reply(None, "timed out")] * 3, True
    assert outcome(go_on(roll)) == "partial"
    cluster.time.pass_s(7 * 3600)
    sent = len(cluster.writes)
    with pytest.raises(Refused, match=f"roll continue {short(roll.digest)} --anew` plans the turn again"):
        go_on(roll)
    assert not any(isinstance(write, Unload) for write in cluster.writes[sent:])


def test_a_stopped_turn_is_planned_again_once_the_cluster_shows_the_outcome_of_its_call(
    roll: Roll, ledger: Ledger, cluster: RestartedCluster
) -> None:
    stopped_turn(roll, ledger, cluster)
    cluster.replies, cluster.fails = [Reply(None, "timed out")] * 3, True
    assert outcome(go_on(roll)) == "partial"
    cluster.fails = False
    [called] = [record for record in roll.look().steps[2].values() if record.is_open]
    cluster.owners[called.bundle] = next(
        step.destination
        for step in recorded_plan(ledger, roll.look().runs[-1].digest).steps
        if step.id == called.step_id
    )
    cluster.time.pass_s(7 * 3600)
    assert outcome(go_on(roll)) == "done"
    assert (roll.look().state, cluster.owned_bundles(B2)) == ("drained", frozenset())


def test_a_pause_ends_a_turn_after_its_moves_in_flight(ledger: Ledger, roll: Roll, cluster: FakeCluster) -> None:
    cluster.once("after the call", lambda: pause(ledger, roll.plan, OLIVE))
    assert outcome(go_on(roll)) == "partial"
    assert roll.look().state == "stopped"
    assert sum(isinstance(call, Unload) for call in cluster.writes) == 1
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    assert outcome(go_on(roll)) == "done"


def test_the_end_takes_everything_back_that_would_let_it_go_on(
    roll: Roll, ledger: Ledger, cluster: FakeCluster
) -> None:
    go_on(roll)
    ended(roll)
    assert is_off(cluster) == [False, False]
    assert all(row.withdrawn_at_ms for row in approvals_of_plan(ledger, roll.digest))
    for act in (lambda: go_on(roll), lambda: ended(roll)):
        with pytest.raises(Refused, match="has ended: ended by olive"):
            act()
