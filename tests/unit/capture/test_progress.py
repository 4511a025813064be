"""Progress goes to stderr, so that stdout carries results only."""

from __future__ import annotations

import pytest

from pulsar_advisor.capture.progress import shown_progress


def test_without_a_terminal_every_step_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as progress:
        progress.begin("namespaces", 7)
        progress.advance()
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "capture: namespaces (7)\n")
