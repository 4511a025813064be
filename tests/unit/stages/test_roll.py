"""A turn of a roll is planned on a fresh snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.stages import roll as stage
from pulsar_advisor.storage.root import Root
from unit.execution.doubles import B1, make_plan


def test_a_turn_that_is_stopped_during_its_capture_is_not_planned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark would take a minute to start and to plan what isn't carried out."""
    done: list[str] = []
    monkeypatch.setattr(stage, "capture", lambda *_: done.append("capture") or "20261121T083000Z")
    monkeypatch.setattr(stage, "seal", lambda *_: done.append("seal"))
    reached = stage.reached(
        make_plan([]),
        Root(str(tmp_path), "demo"),
        None,  # type: ignore[arg-type]
        CaptureOptions(admin=AdminConnection(admin_urls=("http://127.0.0.1:1",))),
        ApprovalPolicy(),
        lambda *_: done.append("turn"),
        lambda _line: None,
        lambda: "ended by SIGTERM" if "capture" in done else None,
    )
    with reached as roll, pytest.raises(Refused, match="nothing was sent: ended by SIGTERM"):
        roll.plan_anew(Goal(ROLL, (B1,), None))
    assert done == ["capture", "seal"]
