"""The room that a snapshot's brokers have for bundles."""

from __future__ import annotations

from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.planning.kinds.goal import ceiling_of
from pulsar_advisor.planning.kinds.room import Room
from pulsar_advisor.planning.proposals.fitness import EVERY_UNLOAD_READS, refusals
from pulsar_advisor.planning.situation import Situation
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.judged import fit_states, inputs_of, require_coverage, settings_of


def room_of(snapshot: Snapshot, ceiling_ratio: float | None = None) -> Room:
    """The room in the judged view of a validated snapshot, under a ceiling: by default the overload threshold.

    Raises `DataNotFit` if validation did not pass or set too much aside, or if an input that every move depends on is
    missing, and `UsageError` as `ceiling_of`: statements about this room must hold for a plan.
    """
    inputs_of(snapshot)
    settings = settings_of(snapshot, {})
    ceiling = ceiling_of(ceiling_ratio, settings.values.overloaded_ratio)
    require_coverage(snapshot, "judged", settings.values)
    state, earlier = fit_states(snapshot, "judged", None, {}, settings.values)
    if lacks := refusals("the room for bundles", "shedder", EVERY_UNLOAD_READS, state):
        raise DataNotFit(lacks[0].sentence)
    return Room.of(Situation.of_fit(state, settings, earlier), ceiling)
