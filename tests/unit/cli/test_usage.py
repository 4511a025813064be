"""Help as people read it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cyclopts import App

from pulsar_advisor.cli import app, exit_code


def test_paragraphs_of_help_are_filled_to_the_width_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    assert exit_code(["undo", "--help"]) == 0
    shown = [line.rstrip(" │") for line in capsys.readouterr().out.splitlines()]
    assert next(line for line in shown if line.startswith("It is made from")).endswith("half-way.")
    assert next(line for line in shown if "--ledger" in line).endswith("else SQLite in a local root.")


def verbs(of: App, *words: str) -> Iterator[tuple[str, App]]:
    """Every command with its words."""
    yield " ".join(words), of
    for name in of:
        if not name.startswith("-"):
            yield from verbs(of[name], *words, name)


def test_every_option_is_explained() -> None:
    assert [
        (words, argument.name)
        for words, verb in verbs(app)
        if verb.default_command
        for argument in verb.assemble_argument_collection(parse_docstring=True)
        if argument.show and not argument.parameter.help
    ] == []
