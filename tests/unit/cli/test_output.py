"""Progress goes to stderr, as much of it as asked for, and results don't change with it."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from io import StringIO

import pytest

from pulsar_advisor.cli import exit_code, output
from pulsar_advisor.cli.output import IN_ANY_ENCODING, is_quiet, listen, log, progress, say_lines, timed

STAGE = logging.getLogger("pulsar_advisor.tables.normalize")
RUN = logging.getLogger("pulsar_advisor.apply")


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    stages = logging.getLogger("pulsar_advisor")
    level, handlers = stages.level, stages.handlers
    yield
    stages.level, stages.handlers = level, handlers
    listen([])


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a stage writes to stderr under these words of the command line."""
    assert listen(["normalize", *words, "--json"]) == ["normalize", "--json"]
    with timed("normalize"):
        STAGE.info("table topics is written")
        RUN.info('{"event": "step sent"}')
    progress("capture: reading")
    log("warning: the disk is full")
    return capsys.readouterr().err


def test_a_stream_of_few_characters_shows_our_own_signs_and_escapes_the_others() -> None:
    assert "4\xa0steps → 50–60%, é 中".encode("latin-1", IN_ANY_ENCODING) == b"4\xa0steps -> 50-60%, \xe9 \\u4e2d"
    assert "4\xa0steps…".encode("ascii", IN_ANY_ENCODING) == b"4 steps..."


def test_a_stage_says_how_long_it_took_and_if_asked_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert re.fullmatch(r"normalize: \d+\.\d s\ncapture: reading\nwarning: the disk is full\n", said(capsys))
    assert said(capsys, "-v").splitlines()[0] == "table topics is written"
    assert not is_quiet()


def test_a_name_in_progress_begins_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    listen([])
    progress("step-001\napproved by alice: confirmed")
    assert capsys.readouterr().err == "step-001\\napproved by alice: confirmed\n"


@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_who_wants_quiet_still_hears_of_trouble(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, option) == "warning: the disk is full\n"
    assert is_quiet()


@pytest.mark.parametrize("words", [[], ["-q"], ["-v"]])
def test_a_warning_of_a_stage_is_said_once(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    listen(words)
    STAGE.warning("day %s", "20261121 can't be read")
    assert capsys.readouterr().err == "day 20261121 can't be read\n"


def test_a_long_stage_says_meanwhile_what_it_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[str] = []
    monkeypatch.setattr(output, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(output, "progress", reports.append)
    listen([])
    with timed("normalize"):
        STAGE.info("writing tables: topics")
        while not any("writing" in report for report in reports):
            pass
    assert "normalize: 0 s so far, writing tables: topics" in reports


def test_quiet_and_verbose_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["snapshots", "list", "-q", "-v"]) == 2
    assert "--quiet and --verbose can't be combined" in capsys.readouterr().err


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "shown"), [(Terminal, "a sentence for a\n  reader\n"), (StringIO, "a sentence for a reader\n")]
)
def test_lines_are_broken_between_words_on_a_terminal_only(
    stream: type[StringIO], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "18")
    results, errors = stream(), stream()
    monkeypatch.setattr(sys, "stdout", results)
    monkeypatch.setattr(sys, "stderr", errors)
    say_lines(["a sentence for a reader"])
    log("a sentence for a reader")
    assert (results.getvalue(), errors.getvalue()) == (shown, shown)


def test_a_line_break_within_a_line_is_shown_as_an_escape(capsys: pytest.CaptureFixture[str]) -> None:
    say_lines(["t/n\nrefused: nothing", "second"])
    assert capsys.readouterr().out == "t/n\\nrefused: nothing\nsecond\n"
