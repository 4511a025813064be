"""The verbs for what came of a plan: verify, undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pulsar_advisor.cli.opened_plans import mind_the_guard, opened_plan
from pulsar_advisor.cli.options import Json, Master, PlanName
from pulsar_advisor.cli.output import log, print_json, result_of, say, say_lines, timed
from pulsar_advisor.cli.places import Reach, command
from pulsar_advisor.cli.rendering import verify_lines
from pulsar_advisor.cli.stages import capture_into
from pulsar_advisor.cli.starting import spark_for
from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.execution.person import person_on_command_line
from pulsar_advisor.model.errors import Deviates
from pulsar_advisor.storage.root import LATEST

if TYPE_CHECKING:
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.model.plans.plan import Plan


def verify(
    plan: PlanName,
    /,
    *,
    reach: Reach = Reach(),
    snapshot: str | None = None,
    master: Master = "local[*]",
    json: Json = False,
) -> None:
    """Compare the cluster with a plan that was carried out; ends with exit code 5 if they differ.

    Parameters
    ----------
    snapshot
        A snapshot taken since; by default the latest. With --admin-url, or --profile and no --snapshot, one is taken
        now instead.
    """
    refuse_together({"--snapshot": snapshot is not None, "a connection (--admin-url)": reach.connection.is_given})
    captures = reach.is_named and snapshot is None

    with opened_plan(plan, reach.place) as (document, root, book):
        from pulsar_advisor.stages.normalize import run as make_tables
        from pulsar_advisor.stages.verify import check, check_snapshot
        from pulsar_advisor.stages.verify import run as compare

        _name_other_turns(document, book)
        check(document, book)
        if captures:
            # Nothing is compared with what brokers publish.
            after = capture_into(root, reach.options(listen_s=0))
            reach.place.seal(after, "capture")
        else:
            after = root.resolve(LATEST if snapshot is None else snapshot)
            check_snapshot(document, book, after)
        with timed("normalize"), reach.place.sealing(after, "normalize"):
            make_tables(spark_for(master, "verify", after), after)
        mind_the_guard(document, book, reach.restore, reach.admin if captures else None)
        result = compare(document, book, after)
    more = f"; and {len(result.deviations) - 1} more" if len(result.deviations) > 1 else ""
    differs = f"the cluster is not as predicted: {result.deviations[0]}{more}" if result.deviations else ""
    with result_of(Deviates(differs) if differs else 0):
        print_json(result) if json else say_lines([*verify_lines(result), f"ledger: {result.ledger_head}"])


def undo(
    plan: PlanName,
    /,
    *,
    as_: Annotated[str, Parameter(name="--as")],
    reach: Reach = Reach(),
    json: Json = False,
) -> None:
    """Write a plan that moves back what a run of this plan moved, for somebody else to approve. Sends nothing.

    It is made from the steps that the ledger shows as confirmed and from the owners and boundaries that the brokers
    show now, so it also works after a run that ended half-way.

    Parameters
    ----------
    as_
        Your name, recorded in the ledger as proposer.
    """
    with opened_plan(plan, reach.place) as (document, root, book):
        from pulsar_advisor.execution.consent.approval import propose
        from pulsar_advisor.planning.plans.consent import approve_words
        from pulsar_advisor.stages.derive import why_not_computed_here
        from pulsar_advisor.stages.undo import run as make_plan

        _name_other_turns(document, book)
        back, written = make_plan(document, book, root, reach.admin())
        propose(book, back, person_on_command_line(as_), why_not_computed_here(root, book, back))
    if json:
        from pulsar_advisor.documents.receipts import ProposedUndo

        executable = tuple(step.id for step in back.steps if step.executable)
        print_json(ProposedUndo(plan=written.file, digest=written.digest, executable_steps=executable))
        return
    for step in back.steps:
        move = f"{step.source} → {step.destination}" if step.executable else f"left out: {step.not_executable_because}"
        say(f"{step.id} {step.bundle_name} {move}")
    if not back.executable_steps:
        say("no bundle can be moved back: there is nothing to approve")
        return
    say("for somebody else to approve, from another account:")
    say(command(approve_words(back), reach.place))


def _name_other_turns(plan: Plan, ledger: Ledger) -> None:
    """Say that the plan of a roll moved its first broker's bundles at most, and which plans moved the others'."""
    from pulsar_advisor.execution.ledger.rolls import recorded_roll
    from pulsar_advisor.model.plans.names import short
    from pulsar_advisor.model.plans.sealed import digest_of

    turns = recorded_roll(ledger, digest_of(plan)).turns
    if others := [f"{turn.broker} {short(turn.plan)}" for turn in turns if turn.plan not in (None, digest_of(plan))]:
        log(f"this is only the roll's own plan; each other turn has a plan of its own: {', '.join(others)}")
