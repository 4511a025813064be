"""Help as people read it."""

from __future__ import annotations

import pytest

from pulsar_advisor.cli import exit_code


def test_paragraphs_of_help_are_filled_to_the_width_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    assert exit_code(["undo", "--help"]) == 0
    shown = [line.rstrip(" │") for line in capsys.readouterr().out.splitlines()]
    assert next(line for line in shown if line.startswith("It is made from")).endswith("half-way.")
    assert next(line for line in shown if "--ledger" in line).endswith("else SQLite beside a local root.")
