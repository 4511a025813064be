"""The output of every verb: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import codecs
import json as json_text
import logging
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from shutil import get_terminal_size
from typing import Final, TextIO

from pulsar_advisor.cli.usage import refuse_together
from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.model.text.plain_text import NO_BREAK, plain
from pulsar_advisor.reporting.wrapping import wrapped_lines

GOAL_NOT_REACHED: Final = 6
"""Exit code: a plan was made, but it misses its goal, or reaches it only in part."""
CHANGES_PROPOSED: Final = 7
"""Exit code of `--detailed-exitcode`: there is something to change."""

IN_ANY_ENCODING: Final = "pulsar_advisor.in_any_encoding"
"""The name of `_in_any_encoding` among Python's error handlers."""
_IN_ASCII: Final = {NO_BREAK: " ", "…": "...", "→": "->", "–": "-", "·": "/"}
"""The signs of our own sentences."""

_QUIET: Final = ("--quiet", "-q")
_VERBOSE: Final = ("--verbose", "-v")
_PATIENCE_S: Final = 10.0
_STAGES: Final = logging.getLogger("pulsar_advisor")
_OF_RUNS: Final = "pulsar_advisor.apply"


class Ended(Exception):
    """A call that has printed everything and ends with this exit code."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def _in_any_encoding(error: UnicodeError) -> tuple[str, int]:
    """One character that a stream's encoding lacks: a sign of our own in ASCII, another one as an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    char = error.object[error.start]
    return _IN_ASCII.get(char) or char.encode("ascii", "backslashreplace").decode(), error.start + 1


codecs.register_error(IN_ANY_ENCODING, _in_any_encoding)


def say(line: str) -> None:
    """Write one or more lines of the result; text from the cluster can't control the terminal."""
    sys.stdout.write(plain(line, keep="\n") + "\n")


def say_rows(rows: Iterable[str]) -> None:
    """Write the rows of a table, each on a line of its own, as wide as they are."""
    say("\n".join(map(plain, rows)))


def say_lines(lines: Iterable[str]) -> None:
    """Write the lines of a result for a reader: on a terminal broken between words, to a file each as it is.

    A line break within one is shown as an escape: text from elsewhere can't pass for a line of its own.
    """
    say(wrapped_lines(map(plain, lines), _columns(sys.stdout)))


def _columns(stream: TextIO) -> int | None:
    """Those of the terminal that the stream writes to; None if it writes to a file or a pipe."""
    return get_terminal_size().columns if stream.isatty() else None


def log(line: str) -> None:
    """Write a line of progress or an error, as `say` does. Does nothing if the terminal or the reader of it is gone."""
    with suppress(OSError):
        sys.stderr.write(wrapped_lines(plain(line, keep="\n").splitlines(), _columns(sys.stderr)) + "\n")


def print_json(result: object) -> None:
    """Write a result as JSON: a document, a part of one, or a list of parts or names."""
    from pulsar_advisor.documents.document import as_json

    shown = [one if isinstance(one, str) else as_json(one) for one in result] if isinstance(result, list) else None
    say(json_text.dumps(as_json(result) if shown is None else shown, indent=1, sort_keys=True))


@contextmanager
def result_of(end: int | AdvisorError) -> Iterator[None]:
    """The block writes the result of a call that ends with this exit code or error, also if there is no room for it."""
    try:
        yield
    except OSError as error:
        if end == 0:
            raise
        if not isinstance(error, BrokenPipeError):
            log(f"error: can't write the result: {error.strerror or error}")
    if isinstance(end, AdvisorError):
        raise end
    if end:
        raise Ended(end)


def listen(words: Sequence[str]) -> list[str]:
    """Set how much is said, by the words of a command line that say it; returns the others.

    `-q`: no progress, only results, warnings and errors. `-v`: also what each stage is doing.
    """
    quiet, verbose = (any(word in options for word in words) for options in (_QUIET, _VERBOSE))
    refuse_together({_QUIET[0]: quiet, _VERBOSE[0]: verbose})
    said = logging.DEBUG if verbose else logging.INFO
    _STAGES.setLevel(logging.WARNING if quiet else said)
    _STAGES.handlers = [_latest]
    return [word for word in words if word not in (*_QUIET, *_VERBOSE)]


def is_quiet() -> bool:
    """Whether progress is not to be shown."""
    return not _STAGES.isEnabledFor(logging.INFO)


def progress(line: str) -> None:
    """Write one line of progress, as `log` does, unless that isn't wanted; a name can't begin another."""
    if not is_quiet():
        log(plain(line))


class _Latest(logging.Handler):
    """The latest message of the stages. Warnings are shown, with `-v` every message."""

    message = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == _OF_RUNS:  # these have their own form
            return
        self.message = record.getMessage()
        if record.levelno >= logging.WARNING or _STAGES.isEnabledFor(logging.DEBUG):
            log(self.message)


_latest = _Latest()


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Report how long the block took, and every ten seconds meanwhile what it is doing."""
    from pulsar_advisor.storage.lease import repeated

    started = time.monotonic()
    _latest.message = ""

    def report() -> None:
        doing = f", {_latest.message}" if _latest.message else ""
        progress(f"{stage}: {time.monotonic() - started:.0f} s so far{doing}")

    with repeated(report, _PATIENCE_S):
        yield
    progress(f"{stage}: {time.monotonic() - started:.1f} s")


def log_lines_of(logger: str) -> None:
    """Write a logger's messages to stderr, one per line and nothing else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.getLogger(logger).addHandler(handler)
    logging.getLogger(logger).setLevel(logging.INFO)
    logging.getLogger(logger).propagate = False
