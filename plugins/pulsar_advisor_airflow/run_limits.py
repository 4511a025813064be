"""Limits of DAG runs: their kinds, number and duration, and the priority of their tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, TypedDict

from pulsar_advisor_airflow.failures import RETRIES
from pulsar_advisor_airflow.notifiers import Call, CallAboutTimeout

NO_BACKFILL: Final = ("manual", "scheduled", "operator_triggered", "asset_triggered", "asset_materialization")
"""The types of run except `backfill`: runs for the past would all capture the present."""

STAGE_TIMEOUT: Final = timedelta(hours=1)
"""Time limit of one try. The largest cluster measured takes minutes; a hung try would block all later snapshots."""

RUN_TIMEOUT: Final = timedelta(hours=4)
"""Time limit of a DAG run that needs no person: all tries of its longest stage, plus the rest."""

FIRST: Final[dict[str, int | str]] = {"priority_weight": 1_000, "weight_rule": "absolute"}
"""Arguments of operators in a run that a person waits for: these go before scheduled runs."""

SOON: Final[dict[str, int | str]] = {"priority_weight": 100, "weight_rule": "absolute"}
"""The same for operators that call people: these go before other scheduled runs."""

PARK_FROM_S: Final = 60.0
"""A shorter wait isn't worth the seconds that a new task process takes to start."""

WAITING_RUNS: Final = 50
"""DAG runs per cluster that may wait for an answer at a time: unanswered ones must not block an urgent one. The ledger
allows one active run per cluster."""


class Unattended(TypedDict):
    """Arguments of a DAG."""

    catchup: bool
    max_active_runs: int
    allowed_run_types: tuple[str, ...]
    disable_bundle_versioning: bool
    dagrun_timeout: timedelta
    on_failure_callback: list[CallAboutTimeout]
    default_args: dict[str, object]


def of_tasks(**more: object) -> dict[str, object]:
    """Arguments of all operators of one of our DAGs. Raises `ImportError` as `Call` does."""
    return {"owner": "pulsar-advisor", "on_failure_callback": [Call("task.failed")], **RETRIES, **more}


def unattended(dagrun_timeout: timedelta = RUN_TIMEOUT, **of_operators: object) -> Unattended:
    """Arguments of a DAG that needs no person, and of its operators."""
    return {
        "catchup": False,
        "max_active_runs": 1,
        "allowed_run_types": NO_BACKFILL,
        "disable_bundle_versioning": True,  # files that a run began with are refused after an upgrade
        "dagrun_timeout": dagrun_timeout,
        "on_failure_callback": [CallAboutTimeout()],
        "default_args": of_tasks(execution_timeout=STAGE_TIMEOUT, **of_operators),
    }
