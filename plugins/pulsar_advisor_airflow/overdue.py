"""Whether a cluster's snapshots arrive on schedule."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from croniter import croniter

from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment
from pulsar_advisor.storage.index import CLOCK_TOLERANCE, why_no_advice

MISSED: Final = 3
"""How many missed snapshots in a row are too many: one is late because it is being processed, and one may fail."""


def why_overdue(schedule: str | None, advised: str | None, now: datetime, awaited_since: datetime | None = None) -> str:
    """Why somebody should look; empty if one of the last `MISSED` snapshots that were due led to advice.

    If none ever did, they were due only if somebody has waited for them since then; None: for long enough.
    """
    if schedule is None:
        return ""
    due = croniter(schedule, now.astimezone(UTC))
    since = [due.get_prev(datetime) for _ in range(MISSED)][-1]
    last_sign = snapshot_moment(advised) if advised else awaited_since
    if last_sign is not None and last_sign >= since - CLOCK_TOLERANCE:
        return ""
    return why_no_advice(since, advised, f", though {MISSED} were due")
