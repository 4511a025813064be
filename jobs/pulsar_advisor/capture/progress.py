"""Shows the progress of a capture: a bar on a terminal, plain lines elsewhere, always on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class CaptureProgress(Protocol):
    """The progress that a capture reports; thread-safe."""

    def begin(self, step: str, total: int) -> None:
        """A step of `total` units begins; the previous one is done."""

    def advance(self) -> None:
        """One unit of the current step is done."""


class _Bars:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None

    def begin(self, step: str, total: int) -> None:
        self._task = self._progress.add_task(step, total=total)

    def advance(self) -> None:
        if self._task is not None:
            self._progress.advance(self._task)


class _Lines:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def begin(self, step: str, total: int) -> None:
        print(f"capture: {step} ({total})", file=self._stream, flush=True)

    def advance(self) -> None:
        """Lines show steps, not units."""


class _Nothing:
    def begin(self, step: str, total: int) -> None:
        """Nothing is shown."""

    def advance(self) -> None:
        """Nothing is shown."""


@contextmanager
def shown_progress(*, quiet: bool = False) -> Iterator[CaptureProgress]:
    """Progress on stderr, in the form that suits the stream; none if it is to be quiet."""
    if quiet:
        yield _Nothing()
        return
    stream = sys.stderr
    if not stream.isatty():
        yield _Lines(stream)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=stream)) as progress:
        yield _Bars(progress)
