"""What ends a recommendation before Spark is asked for anything."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages import recommend, recommend_shedder
from pulsar_advisor.storage.lease import LEASE, held
from pulsar_advisor.storage.plans import PlanReference, write_plan
from pulsar_advisor.storage.root import PLANS, Root

SNAPSHOT = "20261121T083000Z"
EARLIER = Path(__file__).parents[2] / "data" / "earlier" / "root"
CAPTURED = "20261122T093126Z"


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


def test_whoever_was_overtaken_replaces_no_answers_of_the_new_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EARLIER, tmp_path / "root")
    snapshot = Root(str(tmp_path / "root"), "live").snapshot(CAPTURED)

    def suspended_after_it(root: Root, plan: Plan) -> PlanReference:
        (snapshot.folder(PLANS) / LEASE).unlink(missing_ok=True)
        return write_plan(root, plan)

    monkeypatch.setattr(recommend_shedder, "write_plan", suspended_after_it)
    monkeypatch.setattr(recommend_shedder, "write_outcomes", lambda *_: pytest.fail("it replaced them"))
    with pytest.raises(Refused, match="was taken over by another process"):
        recommend.run(lambda: None, snapshot, Request("ThresholdShedder", "configured"))
