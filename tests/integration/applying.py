"""`pulsar-advisor` in a process of its own, and something that happens at one exact instant.

    python applying.py WORK EVENT INSTANT ARGUMENT...

Instants are counted from 1: before and after each write to the ledger and each call to the cluster. At `INSTANT` the
process sends itself a signal (`EVENT`: its number; 0 only counts), or sends SIGKILL to another (`kill:PID`), or fills
up a file system (`fill:FOLDER`). Their names go to the file `WORK/instants`, one a line. Waits that protect against
brokers and hosts much slower than these are shortened. In the environment, `CLOCK_AHEAD_S` is how far its host's clock
is ahead, and `LEASE_MS` how long a process that gives no sign of life is thought to live.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib.metadata import entry_points
from pathlib import Path
from threading import get_ident
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.orm import Session

from pulsar_advisor.execution import apply
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.execution.ledger import held_run, opening, runs, switches
from pulsar_advisor.execution.run import calls, split, unload
from pulsar_advisor.execution.run.guard import left_off

apply.SETTLE_MARGIN_S = 1
calls._AT_LEAST_S = 1
split.POLL_S = unload.POLL_S = 0.05
runs.LEASE_MS = int(os.environ.get("LEASE_MS", "2000"))
held_run._RENEW_MS = 300
opening.ABANDONED_MS = 5000
left_off.MAY_ACT_MS = switches.MAY_ACT_MS = 1000


ahead_s = int(os.environ.get("CLOCK_AHEAD_S", "0"))
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + ahead_s
time.time_ns = lambda: _time_ns() + ahead_s * 1_000_000_000


def happen(what_happens: str) -> None:
    kind, _, what = what_happens.rpartition(":")
    if kind == "fill":
        fill(Path(what))
    elif kind == "kill":
        os.kill(int(what), signal.SIGKILL)
    else:
        os.kill(os.getpid(), int(what))


def fill(folder: Path) -> None:
    """Leave no byte free where a folder lies."""
    with (folder / "filler").open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


def main(work: Path, event_at_instant: str, instant: int, arguments: list[str]) -> None:
    passed: list[str] = []
    writing: set[int] = set()
    """Threads whose transaction adds an event: each step of a run does, and a renewal of the lease does not."""

    def pass_by(name: str) -> None:
        passed.append(name)
        if len(passed) == instant:
            happen(event_at_instant)

    def execute(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT"):
            writing.add(get_ident())

    def before_commit(_connection: object) -> None:
        if get_ident() in writing:
            pass_by("before a write")

    def after_commit(_session: object) -> None:
        if get_ident() in writing:
            writing.remove(get_ident())
            pass_by("after a write")

    def before_and_after(call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def called(*arguments: object) -> Any:
            pass_by("before a call")
            answer = call(*arguments)
            pass_by("after a call")
            return answer

        return called

    event.listen(Engine, "before_cursor_execute", execute)
    event.listen(Engine, "commit", before_commit)
    event.listen(Session, "after_commit", after_commit)
    AdminCluster.send = before_and_after(AdminCluster.send)  # type: ignore[method-assign]
    AdminCluster.look_up = before_and_after(AdminCluster.look_up)  # type: ignore[method-assign]
    (command,) = entry_points(group="console_scripts", name="pulsar-advisor")
    sys.argv[1:] = arguments
    try:
        command.load()()
    finally:
        (work / "instants").write_text("\n".join(passed))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
