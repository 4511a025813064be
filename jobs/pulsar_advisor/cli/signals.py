"""Ctrl-C, SIGTERM and a lost terminal as a request to end after the steps in flight; a second signal ends at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from pulsar_advisor.cli.output import log


@contextmanager
def deferred_signals() -> Iterator[Callable[[], str | None]]:
    """Within the block, report in words whether a signal arrived. A second one raises `KeyboardInterrupt`.

    SIGHUP, sent when a terminal or its connection is lost, stays ignored under `nohup`.
    """
    received: list[str] = []

    def receive(number: int, _frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(f"ended by {signal.Signals(number).name}")
        log("the run ends once the steps in flight are done; a second signal ends it at once")

    handled = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handled.append(signal.SIGHUP)
    handlers = {number: signal.signal(number, receive) for number in handled}
    try:
        yield lambda: received[0] if received else None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
