"""The progress of a capture at a shell: bars on a terminal, else the log's lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pulsar_advisor.capture.progress import CaptureProgress, LoggedProgress
from pulsar_advisor.cli.output import is_quiet


class _Bars:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None

    def begin(self, step: str, total: int) -> None:
        self._task = self._progress.add_task(step, total=total)

    def advance(self) -> None:
        if self._task is not None:
            self._progress.advance(self._task)


@contextmanager
def shown_progress() -> Iterator[CaptureProgress]:
    """Progress in the form that suits stderr and the wish for quiet."""
    if is_quiet() or not sys.stderr.isatty():
        yield LoggedProgress()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:
        yield _Bars(progress)
