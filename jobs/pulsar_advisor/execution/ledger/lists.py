"""What lists show of a ledger: small rows, and only as many as are asked for, however large the ledger is.

Clusters go by their names in paths. Rows are read-only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import pstdev
from typing import Final, TypeVar

from sqlalchemy import ColumnElement, Select, func, select

from pulsar_advisor.documents.runs import RunState
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.runs import DRAINED, NOT_DRAINED
from pulsar_advisor.execution.ledger.tables import (
    RUN_STATES,
    Approval,
    Event,
    PlanRecord,
    PlanSummary,
    Run,
    Verification,
    VerifiedBroker,
)

_Row = TypeVar("_Row", Run, Approval, Event)

_IN_ONE_QUERY: Final = 500
"""Digests per query: databases limit the variables of a statement."""


def summaries(ledger: Ledger, cluster: str, first: int = 0, count: int | None = None) -> Sequence[PlanSummary]:
    """A page of a cluster's plans, newest snapshot first, starting at number `first`."""
    newest_first = select(PlanSummary).order_by(PlanSummary.snapshot.desc(), PlanSummary.recorded_at_ms.desc())
    return ledger.all(newest_first.where(PlanSummary.cluster == cluster).offset(first).limit(count))


def cluster_names(ledger: Ledger, cluster: str) -> frozenset[str]:
    """Pulsar's own names of a cluster, as its plans have them."""
    names = select(PlanRecord.cluster_name).distinct().where(PlanRecord.digest.in_(_digests_of(cluster)))
    return frozenset(ledger.all(names))


def undone(ledger: Ledger, cluster: str) -> Mapping[str, str]:
    """The digests of undone plans: each with that of a plan that undoes it, was carried out, and not itself undone."""
    carried_out = select(PlanSummary.digest, PlanSummary.undoes).join(Run, Run.digest == PlanSummary.digest)
    taking_back = carried_out.where(PlanSummary.undoes.is_not(None), Run.state == "done").order_by(Run.id.desc())
    found: dict[str, str] = {}
    with ledger.reading() as session:
        for row in session.execute(taking_back.where(PlanSummary.cluster == cluster)):
            if row.digest not in found:  # newest first, because a plan is undone after it was carried out
                found.setdefault(row.undoes, row.digest)
    return found


def runs_on(ledger: Ledger, cluster: str, first: int = 0, count: int | None = None) -> Sequence[Run]:
    """A page of the runs of a cluster's plans, newest first, starting at number `first`."""
    newest_first = select(Run).where(Run.digest.in_(_digests_of(cluster))).order_by(Run.id.desc())
    return ledger.all(newest_first.offset(first).limit(count))


def newest_runs(ledger: Ledger, states: Collection[RunState] = RUN_STATES) -> Mapping[str, Run]:
    """The newest run in one of these states of each cluster that has such a run."""
    newest = (
        select(PlanSummary.cluster, func.max(Run.id).label("id"))
        .join(Run, Run.digest == PlanSummary.digest)
        .where(Run.state.in_(states))
        .group_by(PlanSummary.cluster)
        .subquery()
    )
    with ledger.reading() as session:
        rows = session.execute(select(newest.c.cluster, Run).join(Run, Run.id == newest.c.id))
        return {row.cluster: row.Run for row in rows}


@dataclass(frozen=True)
class AfterRun:
    """What `verify` saw in a snapshot taken after a run; usage of the brokers as ratios (0..1), None if unknown."""

    run: int
    as_predicted: bool
    maximum_ratio: float | None
    imbalance_ratio: float | None
    """Standard deviation."""


def after_runs(ledger: Ledger, cluster: str, count: int) -> Mapping[str, AfterRun]:
    """The snapshots with which the last runs of a cluster were verified."""
    of_cluster = select(Verification.id).where(Verification.run_id.in_(_runs_of(cluster)))
    found = _verified(ledger, of_cluster.order_by(Verification.id.desc()).limit(count))
    return {snapshot: after for (_, snapshot), after in found.items()}


def newest_after_run(ledger: Ledger) -> Mapping[tuple[str, str], AfterRun]:
    """The snapshot that the newest verified run of each cluster was verified with, by cluster and snapshot."""
    newest = (
        select(func.max(Verification.id))
        .join(Run, Run.id == Verification.run_id)
        .join(PlanSummary, PlanSummary.digest == Run.digest)
        .group_by(PlanSummary.cluster)
    )
    return _verified(ledger, newest)


def _verified(ledger: Ledger, verifications: Select[int]) -> Mapping[tuple[str, str], AfterRun]:
    chosen = verifications.subquery()
    rows = (
        select(Verification, PlanSummary.cluster, VerifiedBroker.actual_usage_ratio)
        .join(Run, Run.id == Verification.run_id)
        .join(PlanSummary, PlanSummary.digest == Run.digest)
        .outerjoin(VerifiedBroker, VerifiedBroker.verification_id == Verification.id)
        .where(Verification.id.in_(select(chosen)))
        .order_by(Verification.id)
    )
    usage: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    verified: dict[tuple[str, str], Verification] = {}
    with ledger.reading() as session:
        for verification, cluster, ratio in session.execute(rows):
            key = (cluster, verification.snapshot)
            verified[key] = verification
            if ratio is not None and verification.usage_judged:
                usage[key].append(ratio)
    return {
        key: AfterRun(
            one.run_id, one.as_predicted, max(usage[key], default=None), pstdev(usage[key]) if usage[key] else None
        )
        for key, one in verified.items()
    }


def newest_events(ledger: Ledger, cluster: str, count: int) -> Sequence[Event]:
    """The newest events of a cluster's plans, newest first."""
    plans = select(PlanSummary.digest, PlanSummary.last_event).where(PlanSummary.cluster == cluster)
    found: list[Event] = []
    with ledger.reading() as session:
        for digest, last_event in session.execute(plans.order_by(PlanSummary.last_event.desc()).limit(count)):
            if len(found) == count and last_event < found[-1].id:
                break  # neither this plan nor any later one in the list has a newer event
            of_plan = select(Event).where(Event.digest == digest).order_by(Event.id.desc()).limit(count)
            found = sorted([*found, *session.scalars(of_plan)], key=lambda event: -event.id)[:count]
    return found


def not_drained(ledger: Ledger, runs: Collection[Run]) -> Mapping[int, str]:
    """Why brokers that some of these runs drained may not be stopped, by the last look at them; by the run's number."""
    found: dict[int | None, str] = {}
    for events in events_of(ledger, [run.digest for run in runs], (NOT_DRAINED, DRAINED)).values():
        found |= {event.run_id: event.detail if event.kind == NOT_DRAINED else "" for event in events}
    return {run.id: why for run in runs if (why := found.get(run.id))}


def runs_of(ledger: Ledger, digests: Sequence[str]) -> Mapping[str, Sequence[Run]]:
    """The runs of each of these plans, oldest first."""
    return _by_digest(ledger, Run, digests)


def approvals_of(ledger: Ledger, digests: Sequence[str]) -> Mapping[str, Sequence[Approval]]:
    """The approvals of each of these plans, oldest first."""
    return _by_digest(ledger, Approval, digests)


def events_of(ledger: Ledger, digests: Sequence[str], kinds: Sequence[str]) -> Mapping[str, Sequence[Event]]:
    """The events of some kinds of each of these plans, oldest first."""
    return _by_digest(ledger, Event, digests, Event.kind.in_(kinds))


def _runs_of(cluster: str) -> Select[int]:
    return select(Run.id).where(Run.digest.in_(_digests_of(cluster)))


def _digests_of(cluster: str) -> Select[str]:
    return select(PlanSummary.digest).where(PlanSummary.cluster == cluster)


def _by_digest(
    ledger: Ledger, table: type[_Row], digests: Sequence[str], *only: ColumnElement[bool]
) -> Mapping[str, Sequence[_Row]]:
    found: defaultdict[str, list[_Row]] = defaultdict(list)
    with ledger.reading() as session:
        for first in range(0, len(digests), _IN_ONE_QUERY):
            of_these = table.digest.in_(digests[first : first + _IN_ONE_QUERY])
            for row in session.scalars(select(table).where(of_these, *only).order_by(table.id)):
                found[row.digest].append(row)
    return found
