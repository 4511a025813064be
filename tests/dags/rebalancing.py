"""What tests of `pulsar_rebalance` share: its form for short runs, and what a run has left behind."""

from __future__ import annotations

from typing import Any

from dags.conftest import Stages
from pulsar_advisor.model.plans.sealed import digest_of

FAST = {"pause_s": 0, "canary_hold_s": 30, "offer_undo_h": 0}
"""No wait long enough for the run to be parked, and no offer to undo it."""


def kinds(stages: Stages) -> list[str]:
    """Of the events about the plan, in order."""
    return [event.kind for event in stages.ledger().events(digest_of(stages.plan))]


def last_request() -> Any:
    """The newest request for approval in Airflow's database."""
    from airflow.models.hitl import HITLDetail
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return session.scalars(select(HITLDetail).order_by(HITLDetail.created_at.desc())).first()
