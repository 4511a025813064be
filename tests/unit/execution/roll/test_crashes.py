"""Whatever instant the process of a roll dies at, the next one carries it on, and nothing is done twice or left off."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import pytest

from pulsar_advisor.execution.cluster.cluster_port import Unload
from pulsar_advisor.execution.ledger import held_run
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.plans import plan_record
from pulsar_advisor.execution.ledger.switches import switched_off
from pulsar_advisor.execution.roll.conduct import go_on
from pulsar_advisor.execution.run.guard.left_off import left_off
from pulsar_advisor.execution.run.guard.restoring import restore_what_was_left
from pulsar_advisor.execution.run.guard.settings import GUARDED, OFF
from pulsar_advisor.execution.run.options import Work
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of, load_plan
from pulsar_advisor.storage.process import this_process
from unit.execution.doubles import FakeTime, Killed
from unit.execution.roll.doubles import ORDER, approved_roll, go_on_after, roll_of, rolled
from unit.execution.test_crashes import Reaper

BEFORE = {GUARDED[0]: "true"}
SAMPLED = 8


class World:
    """One cluster, and what its people saw: a broker is restarted when it is empty, and only then."""

    def __init__(self) -> None:
        self.cluster = rolled(FakeTime())
        self.cluster.overrides = dict(BEFORE)
        self.restarted: list[str] = []
        self.pids = itertools.count(900_000_001)  # above any real pid, so that the next process sees them gone

    def restart(self, broker: str) -> None:
        if broker not in self.restarted:
            assert self.cluster.owned_bundles(broker) == frozenset(), "drained, so it is empty"
            self.cluster.restart(broker)
            self.restarted.append(broker)


@cache
def approved_once() -> tuple[Plan, bytes]:
    cluster = rolled(FakeTime())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.sqlite"
        ledger = open_ledger(f"sqlite:///{file}", cluster.time.now_ms)
        plan = approved_roll(ledger, cluster)
        ledger.close()
        return plan, file.read_bytes()


def live_once(url: str, world: World, reaper: Reaper) -> bool:
    """One process that carries the roll on, and restarts what waits for it: to the end, unless it is killed."""
    ledger = open_ledger(url, world.cluster.time.now_ms)
    roll = roll_of(approved_once()[0], ledger, world.cluster)
    try:
        with mock.patch.object(held_run, "this_process", return_value=replace(this_process(), id=next(world.pids))):
            reaper.watch(ledger, world.cluster)
            while (seen := roll.look()).recorded.ended is None:
                if seen.state == "drained" and seen.turn is not None:
                    assert world.cluster.overrides[GUARDED[0]] == OFF
                    world.restart(seen.turn.broker)
                    go_on_after(roll, seen.turn.broker, wait_s=5)
                else:
                    go_on(roll)
            return True
    except Killed:
        return False
    finally:
        world.cluster.on_event = lambda _what: None
        ledger.close()


def survive(*kills: int) -> int:
    """Processes that die at these instants, then one that is left alone; how many instants that one had."""
    world = World()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.sqlite"
        file.write_bytes(approved_once()[1])
        url = f"sqlite:///{file}"
        for kill_at in kills:
            assert not live_once(url, world, Reaper(kill_at)), "it died"
        last = Reaper(None)
        live_once(url, world, last)  # a roll that ended just before the kill has its balancer left to restore
        check(url, world)
    return last.instants


def check(url: str, world: World) -> None:
    ledger = open_ledger(url, world.cluster.time.now_ms)
    try:
        if left_off(ledger, "live"):
            restore_what_was_left(Work(ledger, world.cluster, lambda _line: None, world.cluster.time.clock), "live")
        assert world.cluster.overrides == BEFORE
        assert switched_off(ledger, "live") == ()
        assert world.restarted == list(ORDER)
        assert max(Counter(world.cluster.effects).values()) <= 2
        assert audit(ledger).findings == ()
        roll = roll_of(approved_once()[0], ledger, world.cluster).look()
        planned = set()
        for run in roll.runs:
            assert approvals_of_plan(ledger, run.digest), "no run without an approval of its plan"
            record = plan_record(ledger, run.digest)
            assert record is not None
            planned |= {(step.bundle_name, step.destination) for step in load_plan(record.document.encode()).steps}
        sent = {
            (f"{call.namespace}/{call.bundle}", call.destination)
            for call in world.cluster.writes
            if isinstance(call, Unload)
        }
        assert sent <= planned
        assert roll.runs[0].digest == digest_of(roll.roll)
    finally:
        ledger.close()


@cache
def instants() -> int:
    return survive()


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("part", range(SAMPLED))
def test_a_process_that_dies_once(part: int) -> None:
    survive(1 + part * instants() // SAMPLED)


@pytest.mark.slow
def test_processes_that_die_again_and_again() -> None:
    survive(*[instants() // 9] * 12)


@pytest.mark.full
def test_a_process_that_dies_at_many_more_instants() -> None:
    """A roll has about a thousand, of which each takes a second."""
    for kill_at in range(1, instants() + 1, 5):
        survive(kill_at)
