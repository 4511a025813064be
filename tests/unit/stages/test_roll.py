"""A turn of a roll is planned on a fresh snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.model.errors import DataNotFit, Refused
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.stages import roll as stage
from pulsar_advisor.storage.root import Root
from unit.execution.doubles import B1, make_plan


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a turn has done so far; a capture takes no cluster, and a plan no Spark."""
    seen: list[str] = []
    monkeypatch.setattr(stage, "capture", lambda *_: seen.append("capture") or "20261121T083000Z")
    monkeypatch.setattr(stage, "seal", lambda *_: seen.append("seal"))
    return seen


def plan_anew(root: Path, done: list[str], why_stop: Callable[[], str | None]) -> None:
    reached = stage.reached(
        make_plan([]),
        Root(str(root), "demo"),
        None,  # type: ignore[arg-type]
        CaptureOptions(admin=AdminConnection(admin_urls=("http://127.0.0.1:1",))),
        ApprovalPolicy(),
        lambda *_: done.append("turn"),
        lambda _line: None,
        why_stop,
    )
    with reached as roll:
        roll.plan_anew(Goal(ROLL, (B1,), None))


def test_a_turn_that_is_stopped_during_its_capture_is_not_planned(done: list[str], tmp_path: Path) -> None:
    """Spark would take a minute to start and to plan what isn't carried out."""
    with pytest.raises(Refused, match="nothing was sent: ended by SIGTERM"):
        plan_anew(tmp_path, done, lambda: "ended by SIGTERM" if "capture" in done else None)
    assert done == ["capture", "seal"]


def test_a_turn_that_could_not_be_planned_says_why(
    monkeypatch: pytest.MonkeyPatch, done: list[str], tmp_path: Path
) -> None:
    answer = SimpleNamespace(plan=None, digest=None, error="broker_usage is missing")
    monkeypatch.setattr(stage, "read_recommendation", lambda *_: SimpleNamespace(combinations=[answer]))
    with pytest.raises(DataNotFit, match="snapshot 20261121T083000Z: broker_usage is missing"):
        plan_anew(tmp_path, done, lambda: None)
    assert done == ["capture", "seal", "turn"]
