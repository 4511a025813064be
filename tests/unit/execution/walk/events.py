"""What may happen: what the cluster and its surroundings do, and the commands of people and Airflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, NamedTuple

from pulsar_advisor.execution import apply
from pulsar_advisor.execution.consent import approval
from pulsar_advisor.execution.ledger.pauses import lift_pause_of_plan
from pulsar_advisor.execution.ledger.rolls import give_up, recorded_roll, runs_of_roll
from pulsar_advisor.execution.ledger.runs import is_held, runs_of_plan
from pulsar_advisor.execution.roll import conduct
from pulsar_advisor.execution.roll import steering as roll_steering
from pulsar_advisor.execution.roll.status import status_of
from pulsar_advisor.execution.run import steering
from pulsar_advisor.execution.run.guard.restoring import restore_what_was_left
from pulsar_advisor.execution.run.guard.settings import GUARDED
from pulsar_advisor.execution.run.options import ApplyOptions, Work
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of
from unit.execution.actors import BOB, FOUR_EYES
from unit.execution.doubles import make_plan, unload_step
from unit.execution.roll.doubles import OLIVE, ORDER, roll_plan
from unit.execution.walk.world import HOUR_S, UNLOADS_LATE_S, At, Event, Outage, Process, World

BACK_WITHIN_S: Final = 20.0
Command = Callable[[Process, Plan], None]


class Happens(NamedTuple):
    what: Callable[..., None]
    arguments: tuple[Any, ...] = ()

    def happen(self, world: World) -> None:
        self.what(world, *self.arguments)

    def __repr__(self) -> str:
        return f"Happens({self.what.__name__}, {self.arguments})"


class Runs(NamedTuple):
    """A process that carries out a command, about the roll or the other plan under way, or about the next one."""

    command: Command
    troubles: tuple[At, ...] = ()

    def happen(self, world: World) -> None:
        if self.troubles and self.command in RESTORING and world.pulsar.is_balanced:
            Runs(go_on).happen(world)  # so that there is something to restore
        if self.troubles and self.command is restore:
            EXPIRES.happen(world)
        plan = roll_under_way(world) if self.command in ABOUT_ROLLS else moves_under_way(world)
        if self.command in (go_on, go_on_anew, apply_or_resume):
            world.approve(plan)
        if self.command in (go_on, go_on_anew):
            restart(world, plan)
        with world.process(self.troubles) as process:
            self.command(process, plan)

    def __repr__(self) -> str:
        return f"Runs({self.command.__name__}, {self.troubles})"


def newest(world: World, *, is_roll: bool) -> str | None:
    return next((digest for digest, plan in reversed(world.plans.items()) if (plan.shedder == ROLL) == is_roll), None)


def roll_under_way(world: World) -> Plan:
    """Of the two brokers that owned most."""
    digest = newest(world, is_roll=True)
    if digest is not None and recorded_roll(world.ledger, digest).ended is None:
        return world.plans[digest]
    world.time.pass_s(1)  # each plan is of a snapshot of its own
    plan = roll_plan(world.pulsar, sorted(ORDER, key=lambda broker: -len(world.pulsar.owned_bundles(broker)))[:2])
    figures = plan.decision.figures | {"moves_of_a_bundle": 99}
    return plan.model_copy(update={"decision": plan.decision.model_copy(update={"figures": figures})})


def moves_under_way(world: World) -> Plan:
    """All bundles of one broker, to another one."""
    digest = newest(world, is_roll=False)
    if digest is not None and all(run.state in ("stopped", "active") for run in runs_of_plan(world.ledger, digest)):
        return world.plans[digest]
    world.time.pass_s(1)
    source = max(world.pulsar.owners.values())
    to = next(broker for broker in ORDER if broker != source)
    bundles = [name.rpartition("/") for name in sorted(world.pulsar.owned_bundles(source))]
    steps = [unload_step(number, text, source, to, namespace=space) for number, (space, _, text) in enumerate(bundles)]
    return make_plan(steps, snapshot=f"{datetime.fromtimestamp(world.time.ms / 1000, UTC):%Y%m%dT%H%M%SZ}")


def restart(world: World, roll: Plan) -> None:
    """Somebody restarts the broker that the roll's status names, and says so."""
    if digest_of(roll) in world.plans and (broker := status_of(world.ledger, roll).restart):
        world.pulsar.restart(broker)
        with world.process() as process:
            roll_steering.announce(process.ledger, roll, broker, OLIVE)


def wait(world: World, seconds: float) -> None:
    world.time.pass_s(seconds)


def fail(world: World, outage: Outage, seconds: float) -> None:
    """The cluster has an outage from now on."""
    world.pulsar.outage, world.pulsar.until_ms = outage, world.time.ms + int(1000 * seconds)


def shed(world: World) -> None:
    """The cluster's own balancer moves a bundle from the broker that owns most to the one that owns least."""
    least, *_, most = sorted(ORDER, key=lambda broker: len(world.pulsar.owned_bundles(broker)))
    if world.pulsar.is_balanced:
        world.pulsar.bring(max(world.pulsar.owned_bundles(most)), least)


def bring_back(world: World) -> None:
    """Somebody switches the cluster's own balancer on by hand."""
    world.pulsar.changes += 1
    world.pulsar.overrides.pop(GUARDED[0], None)


def withdraw(world: World) -> None:
    """Bob takes back what he has approved."""
    for digest in [*world.approved_until_ms]:
        with world.process() as process:
            approval.withdraw(process.ledger, digest, BOB)
        del world.approved_until_ms[digest]


def apply_or_resume(process: Process, plan: Plan) -> None:
    resume = any(run.is_unfinished for run in runs_of_plan(process.ledger, digest_of(plan)))
    options = ApplyOptions(policy=FOUR_EYES, resume=resume)
    apply.apply_plan(plan, options, Work(process.ledger, process.port, process.line, process.clock))


def look_at_calls(process: Process) -> None:
    """Whoever ends a run is asked to look what became of its calls."""
    if process.world.pulsar.is_at_work:
        process.world.time.pass_s(UNLOADS_LATE_S)


def abort(process: Process, plan: Plan) -> None:
    look_at_calls(process)
    steering.abort(process.ledger, plan, OLIVE)
    restore(process, plan)


def go_on(process: Process, plan: Plan, *, anew: bool = False) -> None:
    """`roll continue`."""
    lift_pause_of_plan(process.ledger, digest_of(plan), OLIVE)
    conduct.go_on(process.roll(plan), BACK_WITHIN_S, OLIVE if anew else None)


def go_on_anew(process: Process, plan: Plan) -> None:
    look_at_calls(process)
    go_on(process, plan, anew=True)


def end_of_task(process: Process, plan: Plan) -> None:
    """Airflow's `restore_guard`, once a roll's task has ended; it waits for a run that goes on nevertheless."""
    give_up(process.ledger, digest_of(plan))
    if not any(is_held(process.ledger, run) for run in runs_of_roll(process.ledger, digest_of(plan))):
        restore(process, plan)


def pause_roll(process: Process, plan: Plan) -> None:
    roll_steering.pause(process.ledger, plan, OLIVE)
    conduct.mind_the_balancer(process.roll(plan))


def end_roll(process: Process, plan: Plan) -> None:
    look_at_calls(process)
    roll_steering.end(process.ledger, plan, OLIVE)
    process.world.approved_until_ms.pop(digest_of(plan), None)
    conduct.mind_the_balancer(process.roll(plan))


def restore(process: Process, _plan: Plan) -> None:
    """`guard restore`."""
    restore_what_was_left(Work(process.ledger, process.port, process.line, process.clock), "live")


RESTORING: Final = (restore, end_of_task, pause_roll, end_roll)
ABOUT_ROLLS: Final = (go_on, go_on_anew, end_of_task, pause_roll, end_roll)


DIES: Final = None
LATE, LOST, UNREADABLE = (Happens(fail, (outage, 1)) for outage in ("late", "unanswered", "unreadable"))
BUSY: Final = Happens(fail, ("busy", 20))
"""Longer than the balancer is tried to be restored."""
EXPIRES: Final = Happens(wait, (2 * HOUR_S,))
BACK, SHED = Happens(bring_back), Happens(shed)
WITHDRAWN: Final = Happens(withdraw)
LAPSES: Final = (WITHDRAWN, WITHDRAWN, EXPIRES)
ENDS: Final = (Runs(abort), Runs(end_roll), Runs(pause_roll), Runs(end_of_task))
OTHERS: Final = (Runs(go_on), Runs(apply_or_resume), Runs(restore))

Menus = Mapping[str, tuple[Event | None, ...]]
OF_RUNS: Final[Menus] = {
    "begin": (BUSY, SHED, *LAPSES),
    "switched off": (DIES, LATE, LATE, LATE, LOST, *ENDS),
    "unload": (DIES, DIES, *OTHERS, *ENDS),
    "step confirmed": (DIES, DIES, UNREADABLE, UNREADABLE, BACK, BACK, BUSY, *LAPSES, *ENDS),
    "run done": (DIES, *ENDS, *OTHERS),
    "wait": (UNREADABLE, *ENDS, *OTHERS, *LAPSES),
}
OF_RESTORING: Final[Menus] = {
    "begin": (Happens(fail, ("busy", 1)), LATE),
    "on": (DIES, LOST, LATE, UNREADABLE, Runs(go_on), Runs(go_on)),
    "switched back": (DIES, Runs(go_on)),
}
"""What happens after what a process did, where it matters most: the longer a menu, the more often."""


def history(random: Random) -> list[Event]:
    """What happens in one walk."""
    return [anything(random) for _ in range(random.randint(3, 5))]


def anything(random: Random) -> Event:
    die = random.random()
    if die < 0.2:
        return random.choice((SHED, Happens(wait, (60,)), Runs(go_on_anew), *ENDS, *LAPSES, *OTHERS))
    if die < 0.35:
        return troubled(random, (end_of_task, pause_roll, end_roll, restore), OF_RESTORING)
    return troubled(random, (go_on, go_on, apply_or_resume), OF_RUNS)


def troubled(random: Random, commands: Sequence[Command], menus: Menus) -> Event:
    """A process that something happens to."""
    troubles: list[At] = []
    while not troubles or (len(troubles) < 2 and random.random() < 0.7):
        did = random.choice([did for did, menu in menus.items() for _ in menu])
        nth = 1 if did in ("begin", "run done") else random.choice((1, 2))
        at = At(did, nth, random.choice((0, 1)), random.choice(menus[did]))
        # Between a look and the call that follows it, anything can happen unseen.
        if at.since == 0 or at.event not in (BACK, Runs(go_on)):
            troubles.append(at)
    return Runs(random.choice(commands), tuple(troubles))
