"""Limits of DAG runs: their kinds, number and duration, and the priority of their tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pulsar_advisor_airflow.failures import RETRIES
from pulsar_advisor_airflow.notifiers import Call, CallAboutTimeout

NO_BACKFILL: Final = ("manual", "scheduled", "operator_triggered", "asset_triggered", "asset_materialization")
"""The types of run except `backfill`: runs for the past would all capture the present."""

STAGE_TIMEOUT: Final = timedelta(hours=1)
"""Time limit of one try. The largest cluster measured takes minutes; a hung try would block all later snapshots."""

RUN_TIMEOUT: Final = timedelta(hours=4)
"""Time limit of a DAG run that needs no person: all tries of its longest stage, plus the rest."""

SOON: Final[dict[str, int | str]] = {"priority_weight": 100, "weight_rule": "absolute"}
"""Arguments of operators that call people: these go before other scheduled runs."""

PARK_FROM_S: Final = 60.0
"""A shorter wait isn't worth the seconds that a new task process takes to start."""

WAITING_RUNS: Final = 50
"""DAG runs per cluster that may wait for an answer at a time: unanswered ones must not block an urgent one. The ledger
allows one active run per cluster."""


def unattended(dagrun_timeout: timedelta = RUN_TIMEOUT, **of_operators: object) -> dict[str, object]:
    """Arguments of a DAG that needs no person, and of its operators. Raises `ImportError` as `Call` does."""
    return {
        "catchup": False,
        "max_active_runs": 1,
        "allowed_run_types": NO_BACKFILL,
        "dagrun_timeout": dagrun_timeout,
        "on_failure_callback": [CallAboutTimeout()],
        **_of_any(execution_timeout=STAGE_TIMEOUT, **of_operators),
    }


def on_request(max_active_runs: int) -> dict[str, object]:
    """The same of a DAG that only a person starts, by its form, and waits for: its tasks go before others."""
    return {
        "render_template_as_native_obj": True,  # preserves the types of numbers and lists in the form
        "max_active_runs": max_active_runs,
        "allowed_run_types": ["manual"],
        "is_paused_upon_creation": False,
        **_of_any(priority_weight=1_000, weight_rule="absolute"),
    }


def _of_any(**of_operators: object) -> dict[str, object]:
    called = [Call("task.failed")]
    return {
        "disable_bundle_versioning": True,  # files that a run began with are refused after an upgrade
        "default_args": {"owner": "pulsar-advisor", "on_failure_callback": called, **RETRIES, **of_operators},
    }
