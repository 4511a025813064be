"""The verbs that read the ledger: plans, runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from pulsar_advisor.cli.opened_plans import named_plan
from pulsar_advisor.cli.options import Flag, Json, PlanName
from pulsar_advisor.cli.output import log, print_json, say, say_lines, say_rows
from pulsar_advisor.cli.places import LedgerPlace, command
from pulsar_advisor.cli.rendering import event_table, plan_table, run_table
from pulsar_advisor.model.errors import AdvisorError, UsageError
from pulsar_advisor.reporting.figures import moment
from pulsar_advisor.storage.root import Root

if TYPE_CHECKING:
    from pulsar_advisor.documents.recommendation import Recommendation
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.execution.ledger.tables import Approval


def plans(*, place: LedgerPlace = LedgerPlace(), all: Annotated[bool, Flag] = False, json: Json = False) -> None:
    """List plans with their state: those of the last recommendation, and all that were ever approved.

    The advised plan comes first, then those somebody acted on, then by effect. Plans that do the same share a line.

    Parameters
    ----------
    all
        List every plan that was ever proposed, each on a line of its own.
    """
    from pulsar_advisor.execution.ledger.lists import summaries
    from pulsar_advisor.execution.ledger.plan_states import states_of

    root = place.open()
    with _ledger_of(place) as (cluster, book):
        plans, made = summaries(book, cluster), _newest_recommendation(root)
        advised = made.advice.digest if made else None
        states = states_of(book, cluster, plans, () if advised is None else (advised,))
    latest = made or next(iter(plans), None)
    newest = None if latest is None else latest.snapshot
    listed = [one for one in states if all or one.snapshot == newest or one.state not in ("proposed", "rejected")]
    if json:
        print_json(listed)
        return
    if listed:
        say_lines(plan_table(listed, each=all))
    else:
        which = f"for snapshot {newest}; --all lists earlier ones" if plans else f"yet for cluster '{cluster}'"
        say(f"no plans proposed {which}")
    if plans and made and advised is None:
        log(f"no plan is advised for snapshot {made.snapshot}: {made.advice.sentence}")


def runs(plan: PlanName | None = None, /, *, place: LedgerPlace = LedgerPlace(), json: Json = False) -> None:
    """List the runs of plans, the newest first: when, by which approval, and how they ended.

    With a plan, list all that happened to it, from its proposal on: approvals, runs, steps, verification.
    """
    from pulsar_advisor.documents.runs import RecordedEvent, RecordedRun
    from pulsar_advisor.execution.ledger.approvals import APPROVED, approvals_of_plan, approvals_of_runs
    from pulsar_advisor.execution.ledger.lists import runs_on, undone
    from pulsar_advisor.execution.ledger.unfinished import concerns
    from pulsar_advisor.execution.run.guard.left_off import left_off

    with _ledger_of(place) as (cluster, book):
        if plan is not None:
            from pulsar_advisor.execution.ledger.trail import rows_written
            from pulsar_advisor.model.plans.names import short
            from pulsar_advisor.model.plans.sealed import digest_of

            digest = digest_of(named_plan(plan, place.open(), place))
            terms = {one.name: _terms(one) for one in approvals_of_plan(book, digest)}
            events = [
                RecordedEvent(
                    event=event.id,
                    at_ms=event.at_ms,
                    run=event.run_id,
                    step=event.step_id,
                    kind=event.kind,
                    detail=event.detail,
                    terms=next((terms[name] for name in rows_written(event.rows) if name in terms), ())
                    if event.kind == APPROVED
                    else (),
                )
                for event in book.events(digest)
            ]
            if json:
                print_json(events)
                return
            say_rows(event_table(events) if events else [f"{short(digest)} was never proposed"])
            if (by := undone(book, cluster).get(digest)) is not None:
                how = command(("runs", short(by)), place)
                say(f"undone since; to see how: {how}")
            return
        left, listed = left_off(book), runs_on(book, cluster)
        to_know = concerns(book, listed)
        found = [
            RecordedRun(
                run=run.id,
                digest=run.digest,
                state=run.state,
                started_at_ms=run.started_at_ms,
                ended_at_ms=run.ended_at_ms,
                approver=approval.approver,
                approver_source=approval.source,
                sentence="; ".join(filter(None, (run.sentence, to_know.get(run.id)))),
                still_off=tuple(switch.setting for switch in left if switch.run == run.id),
            )
            for run, approval in zip(listed, approvals_of_runs(book, listed), strict=True)
        ]
    if json:
        print_json(found)
    else:
        say_rows(run_table(found) if found else [f"no runs yet on cluster '{cluster}'"])


def _terms(approval: Approval) -> tuple[str, ...]:
    """What was approved with the plan, and until when."""
    return (f"until {moment(approval.expires_at_ms)}", *approval.terms)


def _newest_recommendation(root: Root) -> Recommendation | None:
    """As `newest_recommendation`; what can't be read is said, and no more, as the ledger has all the plans."""
    from pulsar_advisor.storage.plans import newest_recommendation

    try:
        return newest_recommendation(root)
    except AdvisorError as error:
        log(f"can't read which plan is advised: {error}")
        return None


@contextmanager
def _ledger_of(place: LedgerPlace) -> Iterator[tuple[str, Ledger]]:
    """The cluster and its ledger. Raises `UsageError` if there is no ledger: listing creates nothing."""
    root = place.open()
    root.require_known()
    with place.ledger_if_any() as book:
        if book is None:
            raise UsageError(
                f"there is no ledger at {place.ledger_url()}: if it was lost, put back a copy; else run `recommend` "
                "first, or name it with --ledger URL"
            )
        yield root.cluster, book
