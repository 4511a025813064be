"""Whatever is said of a room has to hold for a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.errors import DataNotFit, UsageError
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables import judged, rooms
from unit.planning.kinds.clusters import SETTINGS

EARLIER = Path(__file__).parents[2] / "data" / "earlier" / "root"


def test_a_ceiling_that_a_drain_refuses_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "inputs_of", lambda *_: None)
    monkeypatch.setattr(rooms, "settings_of", lambda *_: SETTINGS)
    with pytest.raises(UsageError, match="--ceiling 95% is above the overload threshold of 85%"):
        rooms.room_of(Root("data", "c").snapshot("20261121T083000Z"), 0.95)


def _all_but_one_set_aside(state: ClusterState) -> ClusterState:
    complete = state.brokers.complete.copy()
    complete[1:] = False
    return replace(state, brokers=replace(state.brokers, complete=complete))


def _none_active(state: ClusterState) -> ClusterState:
    return replace(state, brokers=replace(state.brokers, available=state.brokers.available & False))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (_all_but_one_set_aside, r"Too little can be judged: .* Look at `validate`, then capture again"),
        (_none_active, "the room for bundles can't be judged: .*no active broker has a fit report"),
    ],
)
def test_a_snapshot_that_shows_too_little_has_no_room(
    changed: Callable[[ClusterState], ClusterState], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = Root(str(copytree(EARLIER, tmp_path / "root")), "live").snapshot("20261122T093126Z")
    state = judged.state_of(snapshot, "judged", {})
    monkeypatch.setattr(judged, "state_of", lambda *_, **__: changed(state))
    with pytest.raises(DataNotFit, match=why):
        rooms.room_of(snapshot)
