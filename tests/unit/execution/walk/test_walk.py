"""Whatever people, processes, brokers and clocks do: the rules at the head of `world` hold."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

import pytest

from pulsar_advisor.execution.ledger.audit import audit
from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.rolls import recorded_roll
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.steps import steps_of_run
from pulsar_advisor.execution.ledger.switches import MAY_ACT_MS, switched_off
from pulsar_advisor.execution.roll.progress import progress_of
from pulsar_advisor.execution.roll.status import status_of
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.walk.events import (
    BACK,
    BUSY,
    DIES,
    EXPIRES,
    LATE,
    SHED,
    UNREADABLE,
    WITHDRAWN,
    Happens,
    Runs,
    abort,
    apply_or_resume,
    end_of_task,
    end_roll,
    go_on,
    go_on_anew,
    history,
    pause_roll,
    restore,
    wait,
)
from unit.execution.walk.world import COMES_TO_REST, SWITCHES_LATE_S, At, Event, World

TRIALS: Final = 5
QUICK: Final = 4
"""How many walks `make test` takes."""

LEFT_OFF: Final = Runs(apply_or_resume, (At("step confirmed", 1, 0, WITHDRAWN), At("step confirmed", 1, 0, BUSY)))

PAST: Final[dict[str, list[Event]]] = {
    "the call that switches the balancer off acts after it was given back": [
        Runs(go_on, (At("switched off", 1, 0, LATE),)),
    ],
    "it acts after the next run": [
        Runs(apply_or_resume, (At("switched off", 1, 0, LATE),)),
        Runs(apply_or_resume),
    ],
    "it acts after the next turn has failed": [
        Runs(go_on, (At("switched off", 2, 0, LATE),)),
        Runs(go_on, (At("switched off", 1, 0, LATE),)),
    ],
    "a run goes on under what another left off": [LEFT_OFF, Runs(go_on)],
    "another process restores it meanwhile": [
        LEFT_OFF,
        Happens(wait, (60,)),
        Runs(restore, (At("on", 1, 1, Runs(go_on)),)),
    ],
    "after the first of its settings": [
        LEFT_OFF,
        Happens(wait, (60,)),
        Runs(restore, (At("switched back", 1, 0, Runs(go_on)),)),
    ],
    "it is restored again over the next roll, as an answer was lost": [
        Runs(end_roll, (At("on", 1, 0, Runs(go_on)), At("on", 1, 0, UNREADABLE))),
    ],
    "the call that restores it acts after the next turn has begun": [
        Runs(pause_roll, (At("begin", 1, 0, LATE),)),
        Runs(go_on),
    ],
    "a drained broker's approval expires": [Runs(go_on), EXPIRES, Runs(restore)],
    "a roll is paused before its broker is seen to be empty": [
        Runs(go_on, (At("run done", 1, 0, DIES),)),
        Runs(pause_roll),
        Runs(go_on),
    ],
    "a drained roll is paused": [Runs(go_on), Runs(pause_roll), Runs(go_on)],
    "a later turn is paused": [Runs(go_on), Runs(go_on, (At("unload", 1, 0, Runs(pause_roll)),))],
    "a roll is given up during its moves": [Runs(go_on, (At("unload", 1, 0, Runs(end_of_task)),)), Runs(go_on)],
    "somebody brings the balancer back during the moves": [
        Runs(go_on, (At("step confirmed", 1, 0, BACK),)),
    ],
    "after the last move": [Runs(go_on, (At("step confirmed", 2, 0, BACK),))],
    "a step is left out": [Runs(go_on, (At("begin", 1, 0, SHED),))],
    "a turn dies at its first call": [Runs(go_on, (At("unload", 1, 0, DIES),)), Runs(go_on)],
    "after its last step": [Runs(go_on, (At("step confirmed", 2, 0, DIES),))],
    "a later turn that died goes on under a new approval": [
        Runs(go_on),
        Runs(go_on, (At("unload", 1, 0, DIES),)),
        EXPIRES,
    ],
    "an approval is withdrawn between two calls": [Runs(go_on, (At("step confirmed", 1, 0, WITHDRAWN),))],
    "right before the second": [Runs(go_on, (At("step confirmed", 1, 1, WITHDRAWN),))],
    "right before the run": [Runs(apply_or_resume, (At("begin", 1, 0, WITHDRAWN),))],
    "it expires between two calls": [Runs(go_on, (At("step confirmed", 1, 0, EXPIRES),))],
    "somebody restores while a run is under way": [Runs(apply_or_resume, (At("unload", 1, 0, Runs(restore)),))],
}
"""Histories of defects that were mended; what walks find is added here."""


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("events", PAST.values(), ids=PAST)
def test_what_went_wrong_before_does_not_again(events: Sequence[Event]) -> None:
    assert failure(events) is None


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= QUICK)) for seed in range(60)])
def test_no_rule_is_broken_whatever_happens(seed: int) -> None:
    events = history(Random(seed))
    if (why := failure(events)) is not None:
        shortest = without_needless(events, why)
        pytest.fail(f"{failure(shortest)}\n{shortest}")


def without_needless(events: Sequence[Event], why: str) -> Sequence[Event]:
    """The shortest history that still breaks the rule."""
    for number in range(len(events)):
        fewer = [*events[:number], *events[number + 1 :]]
        if (failure(fewer) or "").partition(":")[0] == why.partition(":")[0]:
            return without_needless(fewer, why)
    return events


def failure(events: Sequence[Event]) -> str | None:
    """The first rule that a walk through these events breaks, and how."""
    world = World()
    with world.exists():
        for event in events:
            event.happen(world)
            world.check()
            if world.wrong:
                return world.wrong[0]
        come_to_rest(world)
        world.check()
    return world.wrong[0] if world.wrong else None


def come_to_rest(world: World) -> None:
    """Once nothing disturbs, all that was begun ends by the commands that people are shown."""
    world.pulsar.until_ms = 0
    world.time.pass_s(2 * SWITCHES_LATE_S)
    world.check()
    for digest, plan in sorted(world.plans.items(), key=lambda item: item[1].shedder == ROLL):  # a run bars other plans
        if plan.shedder == ROLL:
            restart_the_next(world, plan)
        elif any(run.is_unfinished for run in runs_of_plan(world.ledger, digest)):
            Runs(apply_or_resume).happen(world)
            if any(run.is_unfinished for run in runs_of_plan(world.ledger, digest)):
                Runs(abort).happen(world)
    world.time.pass_s(MAY_ACT_MS / 1000)
    Runs(restore).happen(world)
    is_off = (world.pulsar.overrides, switched_off(world.ledger))
    world.require(is_off == ({}, ()), COMES_TO_REST, is_off)
    active = [run.id for digest in world.plans for run in runs_of_plan(world.ledger, digest) if run.state == "active"]
    world.require(not active, COMES_TO_REST, active)
    world.require(not audit(world.ledger).findings, COMES_TO_REST, "the ledger's audit")


def restart_the_next(world: World, roll: Plan) -> None:
    """A roll is carried on past its next restart, and ended; a turn is planned anew if a bundle went elsewhere."""
    before = recorded_roll(world.ledger, digest_of(roll))
    for _ in range(TRIALS):
        now = recorded_roll(world.ledger, digest_of(roll))
        if now.ended is not None or not now.turns:
            return
        if now.restarted != before.restarted:
            Runs(end_roll).happen(world)
            return
        Runs(go_on_anew if went_elsewhere(world, roll) else go_on).happen(world)
    world.require(False, COMES_TO_REST, status_of(world.ledger, roll).sentence)


def went_elsewhere(world: World, roll: Plan) -> bool:
    """Whether a bundle isn't where the roll's turn brought it."""
    if (run := progress_of(world.ledger, roll).run) is None:
        return False
    records = steps_of_run(world.ledger, run.id)
    steps = [step for step in recorded_plan(world.ledger, run.digest).steps if records[step.id].is_confirmed]
    return any(world.pulsar.owners[step.bundle_name] != step.destination for step in steps)
