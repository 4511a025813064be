"""`roll`: the order in which its brokers are restarted."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pulsar_advisor.planning.questions.roll_order import RollOrder, roll_order
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.rooms import room_of

_log = logging.getLogger(__name__)


def run(
    snapshot: Snapshot, brokers: Sequence[str], spare: Sequence[str], ceiling_ratio: float | None = None
) -> RollOrder:
    """The order for a snapshot that was judged fit; see `roll_order`. Logs which brokers it leaves out.

    Raises `DataNotFit` where figures are missing.
    """
    leader = read_manifest(snapshot).leader
    order = roll_order(room_of(snapshot, ceiling_ratio), leader, brokers, spare)
    for why in order.left_out():
        _log.warning("%s", why)
    return order
