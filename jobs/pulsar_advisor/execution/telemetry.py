"""Telemetry of `apply`: OpenTelemetry metrics, and one JSON log line per event of a run.

It uses only the API: without an SDK and an exporter, the metrics are dropped; without a handler, so are the log lines.
Source of the naming: OpenTelemetry semantic conventions, "General guidelines" for metrics (dots, units in UCUM). Each
has the attribute `cluster`, the cluster's name in the root.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from threading import Thread
from typing import Final

from opentelemetry import metrics

from pulsar_advisor.execution.ledger.tables import Event

LOGGER: Final = "pulsar_advisor.apply"

_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Of the histograms' buckets. The SDK's own are meant for milliseconds: nearly all seconds would be in the first."""

_EXPORT_S: Final = 10.0

_LOG: Final = logging.getLogger(LOGGER)
_METER: Final = metrics.get_meter("pulsar_advisor.apply")
_STEPS: Final = _METER.create_counter(
    "pulsar_advisor.apply.steps", unit="{step}", description="Steps that ended, by action and state"
)
_REFUSALS: Final = _METER.create_counter(
    "pulsar_advisor.apply.refusals", unit="{refusal}", description="Plans that were refused, and nothing was sent"
)
_CALLS: Final = _METER.create_histogram(
    "pulsar_advisor.apply.call.duration",
    unit="s",
    description="From a call to its answer, by action and HTTP status",
    explicit_bucket_boundaries_advisory=_BOUNDS_S,
)
_TIME_TO_OWNER: Final = _METER.create_histogram(
    "pulsar_advisor.apply.time_to_owner",
    unit="s",
    description="From an unload to the broker that then owns the bundle",
    explicit_bucket_boundaries_advisory=_BOUNDS_S,
)


def log_event(event: Event) -> None:
    """Log an event of the ledger: one JSON object per line."""
    _LOG.info(
        json.dumps(
            {
                "at_ms": event.at_ms,
                "event": event.kind,
                "plan": event.digest,
                "run": event.run_id,
                "step": event.step_id,
                "detail": event.detail,
            }
        )
    )


def step_ended(cluster: str, action: str, state: str) -> None:
    """Count a step by its result."""
    _STEPS.add(1, {"cluster": cluster, "action": action, "state": state})


def refused(cluster: str) -> None:
    """Count a refusal."""
    _REFUSALS.add(1, {"cluster": cluster})


def answered(cluster: str, action: str, status: int | None, seconds: float) -> None:
    """Record how long a call took; `status` is None if no answer came."""
    _CALLS.record(seconds, {"cluster": cluster, "action": action, "http.response.status_code": status or 0})


def owned_after(cluster: str, seconds: float) -> None:
    """Record how long an unloaded bundle took to reach its new owner."""
    _TIME_TO_OWNER.record(seconds, {"cluster": cluster})


def flush() -> None:
    """Have the SDK, if there is one, export what was measured; failures don't matter to a run, nor a slow collector.

    It would do so at exit, but not in a task of Airflow, which ends without the exit handlers of the worker.
    """
    if (force_flush := getattr(metrics.get_meter_provider(), "force_flush", None)) is None:
        return

    def export() -> None:
        with suppress(Exception):
            force_flush()

    exporting = Thread(target=export, daemon=True)  # an exporter's own limits may exceed any that it is given
    exporting.start()
    exporting.join(_EXPORT_S)
