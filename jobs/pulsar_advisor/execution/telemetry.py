"""Telemetry of `apply`: OpenTelemetry metrics, and one JSON log line per event of a run.

It uses only the API: without an SDK and an exporter, the metrics are dropped; without a handler, so are the log lines.
Source of the naming: OpenTelemetry semantic conventions, "General guidelines" for metrics (dots, units in UCUM).
"""

from __future__ import annotations

import json
import logging
from typing import Final

from opentelemetry import metrics

from pulsar_advisor.execution.ledger.tables import Event

LOGGER: Final = "pulsar_advisor.apply"

_LOG: Final = logging.getLogger(LOGGER)
_METER: Final = metrics.get_meter("pulsar_advisor.apply")
_STEPS: Final = _METER.create_counter(
    "pulsar_advisor.apply.steps", unit="{step}", description="Steps that ended, by action and state"
)
_REFUSALS: Final = _METER.create_counter(
    "pulsar_advisor.apply.refusals", unit="{refusal}", description="Plans that were refused, and nothing was sent"
)
_CALLS: Final = _METER.create_histogram(
    "pulsar_advisor.apply.call.duration", unit="s", description="From a call to its answer, by action and HTTP status"
)
_TIME_TO_OWNER: Final = _METER.create_histogram(
    "pulsar_advisor.apply.time_to_owner", unit="s", description="From an unload to the broker that then owns the bundle"
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


def step_ended(action: str, state: str) -> None:
    """Count a step by its result."""
    _STEPS.add(1, {"action": action, "state": state})


def refused() -> None:
    """Count a refusal."""
    _REFUSALS.add(1)


def answered(action: str, status: int | None, seconds: float) -> None:
    """Record how long a call took; `status` is None if no answer came."""
    _CALLS.record(seconds, {"action": action, "http.response.status_code": status or 0})


def owned_after(seconds: float) -> None:
    """Record how long an unloaded bundle took to reach its new owner."""
    _TIME_TO_OWNER.record(seconds)
