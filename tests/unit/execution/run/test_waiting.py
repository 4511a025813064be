"""A run that is interrupted or paused ends after the steps in flight, and goes on later."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pulsar_advisor.execution.apply import pause
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.model.errors import Refused
from unit.execution.actors import ALICE, approved, interrupted_run, run
from unit.execution.doubles import (
    FakeCluster,
    make_plan,
    split_step,
    unload_step,
)

MOVE, CUT = unload_step(1), split_step(2)


@pytest.mark.parametrize("what", ["before the call", "the broker is at work", "after the call"])
def test_an_interrupted_run_ends_once_its_step_in_flight_is_done_and_can_be_resumed(
    ledger: Ledger, cluster: FakeCluster, what: str
) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    seen: list[str] = []
    cluster.on_event = seen.append
    cluster.effect_after_s = 25.0
    began_ms = cluster.time.ms
    result = interrupted_run(ledger, cluster, plan, lambda: "ended by SIGTERM" if what in seen else None)
    assert (result.exit_code, [step.state for step in result.steps]) == (5, ["confirmed", "pending"])
    assert result.sentence == "1 of 2 steps confirmed: ended by SIGTERM"
    assert cluster.time.ms - began_ms < 30_000  # neither the canary's time nor a pause
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


def test_a_run_sends_nothing_after_its_time_of_day_and_can_be_resumed(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    until = datetime.fromtimestamp(cluster.time.ms / 1000 + 5, UTC)
    result = run(plan, ledger, cluster, until=until)
    assert (result.exit_code, [step.state for step in result.steps]) == (5, ["confirmed", "pending"])
    assert f"it may send nothing after {until:%H:%M} UTC" in result.sentence
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


def test_a_run_that_is_interrupted_before_its_first_call_sends_nothing(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    with pytest.raises(Refused, match="nothing was sent: ended by SIGTERM; start it again to go on"):
        interrupted_run(ledger, cluster, plan, lambda: "ended by SIGTERM")
    assert cluster.writes == []
    assert run(plan, ledger, cluster).outcome == "done"


def test_an_unload_that_missed_its_destination_is_not_sent_again_by_an_interrupted_run(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    cluster.lands_on = lambda _unload: None
    result = interrupted_run(ledger, cluster, plan, lambda: "ended by SIGTERM" if cluster.writes else None)
    assert (result.exit_code, len(cluster.writes)) == (5, 1)
    cluster.lands_on = lambda unload: unload.destination
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


def test_a_run_can_be_paused_from_elsewhere_and_goes_on_when_it_is_resumed(
    ledger: Ledger, cluster: FakeCluster
) -> None:
    plan = approved(ledger, make_plan([MOVE, CUT]))
    cluster.on_event = lambda what: pause(ledger, plan, ALICE) if what == "after the call" else None
    result = run(plan, ledger, cluster)
    assert result.sentence == "1 of 2 steps confirmed: paused by alice (airflow)"
    cluster.on_event = lambda _what: None
    assert run(plan, ledger, cluster, resume=True).outcome == "done"


def test_there_must_be_something_to_pause(ledger: Ledger, cluster: FakeCluster) -> None:
    plan = approved(ledger, make_plan([MOVE]))
    run(plan, ledger, cluster)
    with pytest.raises(Refused, match="there is nothing to pause"):
        pause(ledger, plan, ALICE)
