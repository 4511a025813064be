"""A scheduler takes what a task writes to stderr for errors, so that progress goes to the log."""

from __future__ import annotations

import logging

import pytest

from pulsar_advisor.capture.progress import LoggedProgress


def test_every_step_is_one_line_of_the_log_and_nothing_else(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    progress = LoggedProgress()
    progress.begin("namespaces", 7)
    progress.advance()
    assert caplog.record_tuples == [("pulsar_advisor.capture.progress", logging.INFO, "reading namespaces (7)")]
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")
