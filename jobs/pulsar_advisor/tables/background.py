"""Runs work in another thread, so that the main thread stays free for Spark and for Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Answer = TypeVar("Answer")


def in_background(work: Callable[[], Answer]) -> Future[Answer]:
    """Start some work now; it ends with the process, even if unfinished."""
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # raised where the result is requested
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    return answer
