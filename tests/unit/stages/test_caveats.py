"""Stages whose answer has no place for caveats log them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pulsar_advisor.stages import lint, restart_order, scale
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables import judged

LIVE, SNAPSHOT = Root(str(Path(__file__).parents[2] / "data/earlier/root"), "live"), "20261122T093126Z"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda: scale.run(LIVE.snapshot(SNAPSHOT), 0.6), id="scale"),
        pytest.param(lambda: restart_order.run(LIVE.snapshot(SNAPSHOT)), id="restart-order"),
        pytest.param(lambda: lint.run(LIVE.snapshot(SNAPSHOT)), id="lint"),
    ],
)
def test_what_a_reader_has_to_know_first_is_logged(
    answer: Callable[[], object], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(judged, "caveats_of", lambda *_: ("Left out: b-3.",))
    answer()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("WARNING", "Left out: b-3.")]
