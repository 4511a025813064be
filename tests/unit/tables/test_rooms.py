"""Whatever is said of a room has to hold for a plan, which no ceiling above the overload threshold does."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables import rooms
from unit.planning.kinds.clusters import SETTINGS


def test_a_ceiling_that_a_drain_refuses_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "inputs_of", lambda *_: None)
    monkeypatch.setattr(rooms, "settings_of", lambda *_: SETTINGS)
    with pytest.raises(UsageError, match="--ceiling 95% is above the overload threshold of 85%"):
        rooms.room_of(Root("data", "c").snapshot("20261121T083000Z"), 0.95)
