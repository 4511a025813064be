"""Where a roll is: who may be restarted, what is left, how long that takes, and what is kept off meanwhile."""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import count

import pytest
from sqlalchemy.orm import Session

from pulsar_advisor.cli.rendering import roll_status_lines
from pulsar_advisor.execution.cluster.cluster_port import Reply
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import lift_pause_of_plan
from pulsar_advisor.execution.roll.conduct import Roll, go_on, mind_the_balancer
from pulsar_advisor.execution.roll.status import status_of, waits_for
from pulsar_advisor.execution.roll.steering import announce, pause
from pulsar_advisor.execution.run.guard.settings import GUARDED
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.names import short
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.doubles import B1, B2, B3, FakeCluster
from unit.execution.roll.doubles import OLIVE, RestartedCluster, approved_roll, go_on_after, roll_plan


def test_before_it_begins_it_says_what_there_is_to_do(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = roll_plan(cluster)
    approve = f"pulsar-advisor approve {short(digest_of(plan))} --as NAME"
    expected = f"no approval of the roll is in force: it can't continue before {approve}"
    assert status_of(ledger, plan).sentence == expected
    plan = approved_roll(ledger, cluster)
    status = status_of(ledger, plan)
    assert (status.moves, status.moves_left, status.restart) == (0, 6, None)
    assert status.moves_take_s == 3 * 1.0 + 3 * 1.0
    assert status.sentence == f"next: pulsar-advisor roll continue {short(digest_of(plan))}"


def test_it_is_shown_though_a_turn_begins_while_the_ledger_is_read(
    roll: Roll, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, read = ledger.reading, count(1)

    def begun_meanwhile() -> AbstractContextManager[Session]:
        if next(read) == 2:
            monkeypatch.undo()
            go_on(roll)
        return reading()

    monkeypatch.setattr(ledger, "reading", begun_meanwhile)
    assert status_of(ledger, roll.plan).restart is None
    assert status_of(ledger, roll.plan).restart == B1


def test_turns_that_move_nothing_take_no_time(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved_roll(ledger, cluster)
    nothing = plan.decision.model_copy(update={"figures": {**plan.decision.figures, "moves_in_all": 0}})
    status = status_of(ledger, plan.model_copy(update={"decision": nothing}))
    assert (status.moves_left, status.moves_take_s) == (0, 0.0)
    assert "0 moves so far, 0 moves and 3 restarts left" in list(roll_status_lines(status, restore=""))


def test_every_turn_shows_what_is_done_and_left(roll: Roll, ledger: Ledger, cluster: RestartedCluster) -> None:
    go_on(roll)
    drained = status_of(ledger, roll.plan)
    assert [(turn.broker, turn.state, turn.moved) for turn in drained.turns] == [
        (B1, "drained", 2),
        (B2, "to come", 0),
        (B3, "to come", 0),
    ]
    assert (drained.restart, drained.moves, drained.moves_left) == (B1, 2, 4)
    assert (drained.balancer_off, drained.still_off) == (GUARDED, ())
    assert drained.sentence.endswith(f"--restarted {B1}")
    [approval] = approvals_of_plan(ledger, digest_of(roll.plan))
    assert drained.approved_until_ms == approval.expires_at_ms
    cluster.restart(B1)
    go_on_after(roll, B1)
    second = status_of(ledger, roll.plan)
    assert [(turn.state, turn.moved) for turn in second.turns] == [("restarted", 2), ("drained", 2), ("to come", 0)]
    assert (second.moves, second.restart) == (4, B2)
    cluster.restart(B2)
    go_on_after(roll, B2)
    cluster.restart(B3)
    go_on_after(roll, B3)
    over = status_of(ledger, roll.plan)
    assert {turn.state for turn in over.turns} == {"restarted"}
    assert (over.moves_left, over.restart, over.balancer_off, over.still_off) == (0, None, (), ())
    assert (over.ended, over.sentence) == ("every broker was restarted", "the roll is over: every broker was restarted")


def test_a_turn_that_stopped_says_why_and_what_to_do(roll: Roll, ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.replies, cluster.fails = [Reply(500, "no")] * 3, True
    go_on(roll)
    status = status_of(ledger, roll.plan)
    assert status.turns[0].state == "stopped"
    assert "the turn of 10.0.0.1:8080 stopped: " in status.sentence
    assert status.sentence.endswith("or with --anew to plan the turn again")
    assert (status.restart, status.balancer_off) == (None, ())


def test_an_expired_approval_is_a_balancer_that_is_still_off(roll: Roll, ledger: Ledger, cluster: FakeCluster) -> None:
    go_on(roll)
    cluster.time.pass_s(25 * 3600)
    status = status_of(ledger, roll.plan)
    assert (status.approved_until_ms, status.balancer_off, status.still_off) == (None, (), GUARDED)
    assert status.restart is None, "the next command switches the balancer on"


def test_the_lines_name_the_next_act_last(roll: Roll, ledger: Ledger) -> None:
    go_on(roll)
    lines = list(roll_status_lines(status_of(ledger, roll.plan), "pulsar-advisor guard restore"))
    assert lines[:4] == [
        f"  1. {B1} drained, 2 bundles moved",
        f"  2. {B2} to come",
        f"  3. {B3} to come",
        "2 moves so far, 4 moves (about 4 s) and 3 restarts left",
    ]
    assert lines[4] == f"off until the roll ends: {' and '.join(GUARDED)}"
    assert lines[-1].startswith(f"{B1} is drained. Restart it, then: pulsar-advisor roll continue ")


def test_a_turn_in_another_process_is_under_way(roll: Roll, ledger: Ledger, cluster: FakeCluster) -> None:
    seen: list[tuple[str | None, str]] = []
    cluster.once(
        "after the call", lambda: seen.append((waits_for(ledger, roll.plan), status_of(ledger, roll.plan).sentence))
    )
    go_on(roll)
    assert seen == [(f"another process drains {B1}", f"{B1} is being drained")]


def test_a_turn_whose_guard_was_refused_is_still_to_come(roll: Roll, ledger: Ledger, cluster: FakeCluster) -> None:
    cluster.rejects_overrides = True
    with pytest.raises(Refused, match="can't be switched off"):
        go_on(roll)
    assert status_of(ledger, roll.plan).sentence.startswith(f"next is {B1}: pulsar-advisor roll continue ")


def test_who_says_that_a_broker_was_restarted_is_named(roll: Roll, ledger: Ledger) -> None:
    go_on(roll)
    announce(ledger, roll.plan, B1, OLIVE)
    assert status_of(ledger, roll.plan).sentence.startswith(f"olive says that {B1} was restarted. To check that ")
    assert waits_for(ledger, roll.plan) is None, "it can be looked at"


def test_it_waits_for_a_restart_and_for_whoever_lifts_a_pause(roll: Roll, ledger: Ledger) -> None:
    assert waits_for(ledger, roll.plan) is None, "its first turn can begin"
    go_on(roll)
    assert waits_for(ledger, roll.plan) == f"{B1} is drained, and waits for its restart"
    pause(ledger, roll.plan, OLIVE)
    assert waits_for(ledger, roll.plan) is None, "the balancer is to be restored"
    mind_the_balancer(roll)
    assert waits_for(ledger, roll.plan) == "it is paused by olive (airflow)"
    assert status_of(ledger, roll.plan).restart is None, "the balancer may bring bundles back to it"
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    assert waits_for(ledger, roll.plan) is None, "the broker is to be looked at again"


def test_whoever_continues_a_roll_that_is_not_paused_changes_nothing(roll: Roll, ledger: Ledger) -> None:
    """A pause that was lifted would have the drained broker looked at again."""
    go_on(roll)
    lift_pause_of_plan(ledger, roll.digest, OLIVE)
    assert status_of(ledger, roll.plan).restart == B1
