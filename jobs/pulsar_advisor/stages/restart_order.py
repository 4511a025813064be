"""`restart-order`: the order of a rolling restart that moves each bundle least often."""

from __future__ import annotations

from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.planning.proposals.executable import why_no_destination
from pulsar_advisor.planning.questions.restart_order import RestartOrder, restart_order
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.judged import warn_of_caveats
from pulsar_advisor.tables.rooms import room_of


def run(snapshot: Snapshot, ceiling_ratio: float | None = None) -> RestartOrder:
    """The order for a snapshot that was judged fit.

    Raises `DataNotFit` if figures are missing, or if the cluster's brokers can't be drained.
    """
    room = room_of(snapshot, ceiling_ratio)
    if why := why_no_destination(room.state, room.settings):
        raise DataNotFit(f"{why} So no broker can be drained, in any order.")
    warn_of_caveats(snapshot)
    return restart_order(room)
