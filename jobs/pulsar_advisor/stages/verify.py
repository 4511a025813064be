"""`verify`: compares a plan's prediction with a snapshot taken afterwards."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Final

from pulsar_advisor.documents.verify_result import VerifyResult
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.verify import require_later, settle_s, settled_run, verify_plan
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor.tables.settings_inputs import settings_inputs
from pulsar_advisor.tables.state import cluster_state

_LONGEST_WAIT_S: Final = 7200

_log = logging.getLogger(__name__)


def check(plan: Plan, ledger: Ledger) -> None:
    """Raise now, rather than after a capture and Spark, if there is no run to verify."""
    settled_run(plan, ledger)


def judged_from(plan: Plan, ledger: Ledger, root: Root) -> datetime:
    """The time (UTC) from which a capture shows figures from after the plan's run. Raises as `check`.

    A cluster's settings may say any time, even one after all years: beyond two hours, usage isn't judged instead.
    """
    _, ended_at_ms = settled_run(plan, ledger)
    # Without the snapshot's tables, the release's defaults.
    planned_on = root.snapshot(plan.snapshot)
    inputs = settings_inputs(planned_on) if planned_on.is_written("normalize") else (plan.pulsar_version, {}, {})
    wait_s = min(settle_s(resolve_settings(*inputs).values), _LONGEST_WAIT_S)
    return datetime.fromtimestamp(ended_at_ms / 1000, UTC) + timedelta(seconds=wait_s)


def check_snapshot(plan: Plan, ledger: Ledger, snapshot: Snapshot) -> None:
    """Raise now, rather than after Spark, if a snapshot predates the end of the run."""
    require_later(snapshot.id, read_manifest(snapshot).started_at_ms, *settled_run(plan, ledger))


def run(plan: Plan, ledger: Ledger, snapshot: Snapshot) -> VerifyResult:
    """Compare an applied plan with a normalized snapshot; see `verify_plan`."""
    settings = resolve_settings(*settings_inputs(snapshot)).values
    planned_on = snapshot.root.snapshot(plan.snapshot)
    before = cluster_state(planned_on) if planned_on.is_written("normalize") else None
    result = verify_plan(plan, ledger, cluster_state(snapshot, "fresh"), settings, before)
    found = f"not as predicted: {plain('; '.join(result.deviations))}" if result.deviations else "as predicted"
    _log.info("run %d of %s, by snapshot %s: %s", result.run, result.digest, snapshot, found)
    return result
