"""Signals: by default SIGTERM ends a command as Ctrl-C does. For a run, they and a lost terminal are a request to end
after the steps in flight; a second signal ends at once.
"""

from __future__ import annotations

import _thread
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from pulsar_advisor.cli.output import log

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ENDS_WITHIN_S: Final = 10
"""Of the half a minute that Kubernetes allows."""


class Terminated(KeyboardInterrupt):
    """SIGTERM ended the command."""


def terminate(number: int, frame: FrameType | None) -> None:
    """On SIGTERM, do what Ctrl-C does and raise `Terminated`, so that what the process holds is given up.

    By default the first process of a container ignores this signal until it is killed, and any other process leaves its
    leases behind, which the next container has to take for held. A slow broker, or a lock that was being taken, delays
    the end by `_ENDS_WITHIN_S` at most; a second signal ends the process at once, unless it is a container's first.
    """
    signal.signal(number, signal.SIG_DFL)
    # Not by an alarm, which a first process ignores, too; nor by `threading`, of which this may hold a lock.
    _thread.start_new_thread(_end_in_time, (128 + number,))
    interrupt = signal.getsignal(signal.SIGINT)
    if callable(interrupt):
        with suppress(KeyboardInterrupt):
            interrupt(number, frame)
    raise Terminated


def _end_in_time(code: int) -> None:
    time.sleep(_ENDS_WITHIN_S)
    os._exit(code)


@contextmanager
def deferred_signals() -> Iterator[Callable[[], str | None]]:
    """Within the block, report in words whether a signal arrived. A second one raises `KeyboardInterrupt`.

    What the caller has ignored stays so: SIGHUP, sent when a terminal or its connection is lost, under `nohup`, and
    SIGINT where a script started this process by `&`.
    """
    received: list[str] = []

    def receive(number: int, _frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(f"ended by {signal.Signals(number).name}")
        log("the run ends once the steps in flight are done; a second signal ends it at once")

    handled = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, receive) for number in handled}
    try:
        yield lambda: received[0] if received else None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
