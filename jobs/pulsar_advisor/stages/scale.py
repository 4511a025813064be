"""`scale`: how many brokers a snapshot's load needs, and the effect of fewer or more."""

from __future__ import annotations

from pulsar_advisor.planning.kinds.goal import check_usage
from pulsar_advisor.planning.questions.scale import Scale, scale
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.judged import warn_of_caveats
from pulsar_advisor.tables.rooms import room_of


def run(snapshot: Snapshot, target_ratio: float) -> Scale:
    """The answer for a snapshot that was judged fit. Raises `DataNotFit` where figures are missing.

    And `UsageError` for a target that no broker can be held to.
    """
    check_usage("--to", target_ratio)
    room = room_of(snapshot)
    warn_of_caveats(snapshot)
    return scale(room, target_ratio)
