"""Work beside the main thread, which stays free for Spark and for Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Answer = TypeVar("Answer")


def in_background(work: Callable[[], Answer]) -> Future[Answer]:
    """Begin some work now; it ends with the process, even if unfinished."""
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # whoever asks for the answer gets it
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    return answer
