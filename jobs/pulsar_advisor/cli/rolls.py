"""The verbs of a rolling restart: `roll` makes its plan, `roll continue` carries it out; `status`, `pause`, `end`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pulsar_advisor.cli.goals import Broker, Ceiling
from pulsar_advisor.cli.opened_plans import head_kept, opened_plan
from pulsar_advisor.cli.options import Comment, Flag, Json, Master, PlanName, YourName
from pulsar_advisor.cli.output import log, print_json, progress, result_of, say_lines
from pulsar_advisor.cli.places import HeadsPlaces, LedgerPlace, Reach, ReachToWrite
from pulsar_advisor.cli.rendering import roll_lines, roll_status_lines
from pulsar_advisor.cli.signals import deferred_signals
from pulsar_advisor.cli.stages import Making
from pulsar_advisor.cli.starting import spark_for
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.execution.person import person_on_command_line
from pulsar_advisor.model.bounds import ratio, seconds
from pulsar_advisor.model.errors import AdvisorError, BalancerStillOff, Deviates
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.storage.root import Root, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsar_advisor.documents.roll_status import RollStatus
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.execution.roll.conduct import Roll
    from pulsar_advisor.execution.run.options import Interruption
    from pulsar_advisor.model.plans.plan import Plan

Spare = Annotated[
    tuple[str, ...],
    Parameter(help="Broker that takes bundles first and isn't restarted, such as a new one; repeatable."),
]


@contextmanager
def _opened(plan: str, place: LedgerPlace) -> Iterator[tuple[Plan, Root, Ledger]]:
    """As `opened_plan`; raises `Refused` for a plan that is no roll too."""
    with opened_plan(plan, place) as opened:
        from pulsar_advisor.execution.roll.steering import require_roll

        plan_of_roll, _, book = opened
        require_roll(book, plan_of_roll)
        yield opened


def _reached(
    reach: ReachToWrite,
    plan: Plan,
    root: Root,
    book: Ledger,
    master: str = "local[*]",
    interruption: Interruption | None = None,
) -> AbstractContextManager[Roll]:
    """The roll on its cluster."""
    from pulsar_advisor.execution.run.options import undisturbed
    from pulsar_advisor.stages.roll import in_a_session, reached

    def spark(snapshot: Snapshot) -> SparkSession:
        return spark_for(master, "roll", snapshot)

    options, rules, stop = reach.options(), reach.policy.read(), interruption or undisturbed
    turn = in_a_session(plan, book, spark)
    return reached(plan, root, book, options, rules, turn, progress, stop)


def plan(*broker: Broker, spare: Spare = (), ceiling: Ceiling = None, making: Making = Making()) -> None:
    """Make the plan of a rolling restart, and show its order: every broker is drained before it is restarted.

    Without brokers: all, in the order that moves each bundle least often. The leader comes last. The plan's steps are
    the first broker's; each later turn is planned anew, on fresh figures, within what was approved.
    """
    from pulsar_advisor.stages.roll_order import run

    snapshot = making.place.at(making.snapshot)
    highest = None if ceiling is None else ratio(ceiling)
    order = run(snapshot, broker, spare, highest)
    if order.why_none is None:  # else the plan says so
        if not making.json:
            say_lines(roll_lines(order))
        elif order.balance_first is not None:
            log(order.balance_first)
    replace(making, snapshot=snapshot.id).plan(Goal(ROLL, order.brokers, None, highest))


def continue_(
    plan: PlanName,
    /,
    *,
    restarted: str | None = None,
    wait: str = "20m",
    anew: Annotated[bool, Flag] = False,
    as_: Annotated[str | None, Parameter(name="--as")] = None,
    reach: ReachToWrite = ReachToWrite(),
    heads: HeadsPlaces = HeadsPlaces(),
    master: Master = "local[*]",
    json: Json = False,
) -> None:
    """Carry an approved roll on until a broker is drained, and end there: restart it, and say so with --restarted.

    The first call begins the roll; after a crash or a pause it goes on where it is. Nothing here restarts a broker, and
    nothing has to run while one restarts; the cluster's own balancer stays off until the roll ends.

    Parameters
    ----------
    restarted
        The drained broker, once you have restarted it. The roll goes on when it is healthy, listed, and known to the
        leader.
    wait
        How long this command waits for that.
    anew
        End a turn that stopped half-way, and plan it again.
    as_
        Your name, for the ledger (with --restarted or --anew, and to lift a pause).
    """
    refuse_together({"--restarted": restarted is not None, "--anew": anew})
    wait_s = seconds(wait)
    with _opened(plan, reach.place) as (document, root, book), head_kept(book, heads.keepers(reach.place)):
        from pulsar_advisor.execution.ledger.pauses import lift_pause_of_plan
        from pulsar_advisor.execution.roll.conduct import go_on
        from pulsar_advisor.execution.roll.status import status_of
        from pulsar_advisor.execution.roll.steering import announce
        from pulsar_advisor.model.plans.sealed import digest_of

        person = person_on_command_line(as_)
        with (
            deferred_signals() as interruption,
            _reached(reach, document, root, book, master, interruption) as roll,
        ):
            if restarted is not None:
                announce(book, document, restarted, person)
            lift_pause_of_plan(book, digest_of(document), person)
            result = go_on(roll, wait_s, person if anew else None)
        status = status_of(book, document)
    end: int | Deviates = 0
    if result is not None and result.outcome == "partial":
        end = Deviates(f"the turn was carried out in part: {result.sentence}")
    _show(status, reach.restore, end, json=json)


def status(plan: PlanName, /, *, reach: Reach = Reach(), json: Json = False) -> None:
    """Show where a roll is: which broker may be restarted, what is left, and how long that takes. Sends nothing.

    With --profile or --admin-url, also whether somebody has switched the cluster's own balancer on, which fills a
    drained broker again: then it is not to be restarted.
    """
    with _opened(plan, reach.place) as (document, _, book):
        from pulsar_advisor.execution.roll.status import but_filling, status_of

        found = status_of(book, document)
    if found.restart is not None and reach.is_named and (why := _why_balancer_is_on(reach, document)):
        found = but_filling(found, why)
    _show(found, reach.restore, json=json)


def _why_balancer_is_on(reach: Reach, roll: Plan) -> str | None:
    from pulsar_advisor.stages.apply import why_balancer_is_on

    try:
        return why_balancer_is_on(reach.admin(), roll.identity.cluster_name)
    except AdvisorError as error:  # a profile may lack an admin URL, or name a token that isn't on this machine
        log(f"can't see whether the balancer is off: {error}")
        return None


def pause(plan: PlanName, /, *, as_: YourName, reach: ReachToWrite = ReachToWrite(), json: Json = False) -> None:
    """Stop a roll after its moves in flight; no turn begins until `roll continue`.

    The cluster's own balancer is switched on meanwhile.
    """
    with _opened(plan, reach.place) as (document, root, book):
        from pulsar_advisor.execution.roll.conduct import mind_the_balancer
        from pulsar_advisor.execution.roll.status import status_of
        from pulsar_advisor.execution.roll.steering import pause as pause_roll

        with _reached(reach, document, root, book) as roll:
            pause_roll(book, document, person_on_command_line(as_))
            mind_the_balancer(roll)
        found = status_of(book, document)
    _show(found, reach.restore, json=json)


def end(
    plan: PlanName,
    /,
    *,
    as_: YourName,
    comment: Comment = "",
    reach: ReachToWrite = ReachToWrite(),
    heads: HeadsPlaces = HeadsPlaces(),
    json: Json = False,
) -> None:
    """End a roll for good, wherever it is: withdraw its approval, and switch the cluster's own balancer on again."""
    with _opened(plan, reach.place) as (document, root, book), head_kept(book, heads.keepers(reach.place)):
        from pulsar_advisor.execution.roll.conduct import mind_the_balancer
        from pulsar_advisor.execution.roll.status import status_of
        from pulsar_advisor.execution.roll.steering import end as end_roll

        with _reached(reach, document, root, book) as roll:
            for line in end_roll(book, document, person_on_command_line(as_), comment):
                log(line)
            mind_the_balancer(roll)
        found = status_of(book, document)
    _show(found, reach.restore, json=json)


def _show(status: RollStatus, restore: str, end: int | Deviates = 0, *, json: bool) -> None:
    with result_of(BalancerStillOff.exit_code if status.still_off else end):
        print_json(status) if json else say_lines(
            [*roll_status_lines(status, restore), f"ledger: {status.ledger_head}"]
        )
