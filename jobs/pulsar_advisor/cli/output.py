"""The output of every verb: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import json as json_text
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pulsar_advisor.model.plain_text import plain


class Ended(Exception):
    """A call that has printed everything and ends with this exit code."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def say(line: str) -> None:
    """Write one or more lines of the result; text from the cluster can't control the terminal."""
    sys.stdout.write(plain(line, keep="\n") + "\n")


def log(line: str) -> None:
    """Write a line of progress or an error, as `say` does. Does nothing if the terminal or the reader of it is gone."""
    with suppress(OSError):
        sys.stderr.write(plain(line, keep="\n") + "\n")


def print_json(document: Any) -> None:
    """Write a result as JSON."""
    say(json_text.dumps(document, indent=1, sort_keys=True))


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Report how long the block took."""
    started = time.monotonic()
    yield
    log(f"{stage}: {time.monotonic() - started:.1f} s")


def log_lines_of(logger: str) -> None:
    """Write a logger's messages to stderr, one per line and nothing else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.getLogger(logger).addHandler(handler)
    logging.getLogger(logger).setLevel(logging.INFO)
    logging.getLogger(logger).propagate = False
