"""The page of a roll: its progress, and the actions of whoever restarts its brokers or steers it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.pauses import lift_pause_of_plan
from pulsar_advisor.execution.roll.status import status_of
from pulsar_advisor.execution.roll.steering import announce, end, pause, require_roll
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor_airflow.clusters import Cluster
from pulsar_advisor_airflow.configuration import page_link
from pulsar_advisor_airflow.pages.access import FormToken, MayRoll, Readable, ReportedBy, RolledBy
from pulsar_advisor_airflow.pages.answers import page
from pulsar_advisor_airflow.pages.places import ledger_if_any
from pulsar_advisor_airflow.pages.plans import proposed_plan

REFRESH_S: Final = 10
"""Interval at which the page of a roll renews itself until the roll is over."""

rolls = APIRouter(prefix="/clusters/{cluster}/rolls/{digest}")


@rolls.get("")
def roll_page(request: Request, cluster: Readable, digest: str, writes: MayRoll, token: FormToken) -> Response:
    """A roll, turn by turn; the page renews itself until the roll is over."""
    with _roll(cluster, digest) as (ledger, plan):
        status = status_of(ledger, plan)
    headers = {"Refresh": str(REFRESH_S)} if status.ended is None else {}
    return page(request, "roll.html", headers, cluster=cluster, status=status, writes=writes, token=token)


@rolls.post("/restarted")
def broker_was_restarted(
    cluster: Readable, digest: str, person: ReportedBy, broker: Annotated[str, Form(min_length=1)]
) -> RedirectResponse:
    """Record that the drained broker has been restarted: by the page's button, or by automation."""
    with _roll(cluster, digest) as (ledger, plan):
        announce(ledger, plan, broker, person)
    return _back(cluster, digest)


@rolls.post("/pause")
def pause_roll(cluster: Readable, digest: str, person: RolledBy) -> RedirectResponse:
    """Make the roll stop after its moves in flight, and begin no turn."""
    with _roll(cluster, digest) as (ledger, plan):
        pause(ledger, plan, person)
    return _back(cluster, digest)


@rolls.post("/go-on")
def let_roll_go_on(cluster: Readable, digest: str, person: RolledBy) -> RedirectResponse:
    """Lift the roll's pause."""
    with _roll(cluster, digest) as (ledger, _):
        lift_pause_of_plan(ledger, digest, person)
    return _back(cluster, digest)


@rolls.get("/end")
def ask_to_end_roll(request: Request, cluster: Readable, digest: str, writes: MayRoll, token: FormToken) -> Response:
    """Ask once more: a tap can go astray, and an ended roll never continues."""
    with _roll(cluster, digest):
        pass
    return page(
        request,
        "ask.html",
        cluster=cluster,
        writes=writes,
        token=token,
        question="End this rolling restart for good?",
        afterwards="It never continues: the brokers that are left take a new roll, approved anew.",
        label="End for good",
        back=page_link("clusters", cluster.name, "rolls", digest),
    )


@rolls.post("/end")
def end_roll(cluster: Readable, digest: str, person: RolledBy) -> RedirectResponse:
    """End the roll for good; its task, or the hourly maintenance, switches the cluster's own balancer on again."""
    with _roll(cluster, digest) as (ledger, plan):
        end(ledger, plan, person)
    return _back(cluster, digest)


@contextmanager
def _roll(cluster: Cluster, digest: str) -> Iterator[tuple[Ledger, Plan]]:
    """The ledger, and the plan of a roll of the cluster. Raises `UsageError`, and `Refused` as `require_roll` does."""
    with ledger_if_any() as ledger:
        plan = proposed_plan(ledger, cluster, digest)
        assert ledger is not None, "as it holds the plan"
        require_roll(ledger, plan)
        yield ledger, plan


def _back(cluster: Cluster, digest: str) -> RedirectResponse:
    return RedirectResponse(page_link("clusters", cluster.name, "rolls", digest), HTTPStatus.SEE_OTHER)
