"""What ends a recommendation before Spark is asked for anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.model.errors import Refused
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages import recommend
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.root import PLANS, Root

SNAPSHOT = "20261121T083000Z"


def test_two_requests_about_one_snapshot_are_not_answered_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommend, "check", lambda *_: None)
    snapshot = Root(str(tmp_path), "test").snapshot(SNAPSHOT)
    with (
        held(snapshot.folder(PLANS), SNAPSHOT, "by the other"),
        pytest.raises(Refused, match="are being made by another process"),
    ):
        recommend.run(lambda: None, snapshot, Request())
