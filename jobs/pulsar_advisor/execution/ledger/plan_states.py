"""The states of a cluster's plans, from the ledger: proposed, rejected, approved, expired, applied, undone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal

from pulsar_advisor.documents.runs import RunState
from pulsar_advisor.execution.ledger.approvals import REJECTED
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.lists import approvals_of, events_of, runs_of, undone
from pulsar_advisor.execution.ledger.plan_summary import Summary
from pulsar_advisor.execution.ledger.rolls import ALL_RESTARTED, TURN_BEGUN, recorded_roll, runs_of_roll
from pulsar_advisor.execution.ledger.tables import Approval, Event, PlanSummary
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.plans.names import title_of

PlanStateName = Literal[
    "proposed", "rejected", "approved", "withdrawn", "expired", "applying", "stopped", "aborted", "applied", "undone"
]
"""rejected: the last request for approval was answered with no, or not in time. approved: an approval is valid;
expired, withdrawn: the newest one no longer is. applying, stopped, aborted: its newest run is active, ended with steps
left, or was ended by a person. undone: a plan that undoes it was applied. A roll that was begun is applied once every
broker was restarted, aborted if it ended before, stopped if its newest run is, and otherwise applying."""


_ASKED_AND_ANSWERED: Final = ("proposed", "approved", REJECTED)


@dataclass(frozen=True, kw_only=True)
class PlanState(Summary):
    """A proposed plan and its state."""

    digest: str
    snapshot: str
    state: PlanStateName
    advised: bool
    """Whether the last recommendation of its snapshot advises it."""

    @property
    def title(self) -> str:
        """What made it, as `Plan.title`, but without the brokers of a goal."""
        return title_of(self.shedder, self.placement, self.undoes)


def states_of(
    ledger: Ledger, cluster: str, plans: Sequence[PlanSummary], advised: Collection[str] = ()
) -> list[PlanState]:
    """The states of some plans of a cluster (its name in paths), in their order; `advised` are digests."""
    digests = [plan.digest for plan in plans]
    taken_back = undone(ledger, cluster)
    approvals = approvals_of(ledger, digests)
    begun = {
        digest: [run.state for run in runs if run.state != "refused"]
        for digest, runs in runs_of(ledger, digests).items()
    }
    turns = events_of(ledger, [plan.digest for plan in plans if plan.shedder == ROLL], [TURN_BEGUN])
    answers = events_of(ledger, [digest for digest in digests if not begun.get(digest)], _ASKED_AND_ANSWERED)

    now_ms = ledger.latest_ms()  # as for `apply`, what has expired stays so

    def state(digest: str) -> PlanStateName:
        of_roll = _state_of_roll(ledger, digest) if digest in turns else None
        if digest in taken_back and of_roll not in ("applying", "stopped"):  # a roll goes on with its other turns
            return "undone"
        found = begun.get(digest, ()), approvals.get(digest, ()), answers.get(digest, ())
        return of_roll or _state(*found, now_ms)

    return [
        PlanState(
            digest=plan.digest,
            snapshot=plan.snapshot,
            state=state(plan.digest),
            advised=plan.digest in advised,
            **{one.name: getattr(plan, one.name) for one in fields(Summary)},
        )
        for plan in plans
    ]


def _state_of_roll(ledger: Ledger, digest: str) -> PlanStateName:
    ended = recorded_roll(ledger, digest).ended
    if ended is not None:
        return "applied" if ended == ALL_RESTARTED else "aborted"
    runs = runs_of_roll(ledger, digest)
    return "stopped" if runs and runs[-1].state == "stopped" else "applying"


def _state(
    begun: Sequence[RunState], approvals: Sequence[Approval], answers: Sequence[Event], now_ms: int
) -> PlanStateName:
    if "done" in begun:
        return "applied"
    if begun and begun[-1] == "active":
        return "applying"
    if begun:
        return "aborted" if begun[-1] == "aborted" else "stopped"
    if any(one.is_in_force(now_ms) for one in approvals):
        return "approved"
    if answers and answers[-1].kind == REJECTED:
        return "rejected"
    if not approvals:
        return "proposed"
    return "withdrawn" if approvals[-1].withdrawn_at_ms is not None else "expired"
