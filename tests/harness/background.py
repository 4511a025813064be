"""Keeps hold of processes that go on after the command that started them, through one state file each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness import children

STOP_LIMIT_S = 20


def start(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Run `python -m harness …` on its own, with its output in `log`."""
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "harness", *arguments],
            env=children.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def remember(state_file: Path, pid: int, facts: dict[str, Any]) -> None:
    """Write the state file of process `pid`; it appears whole."""
    new = state_file.with_suffix(".new")
    new.write_text(json.dumps({"process": _identity(pid), **facts}, indent=2) + "\n", encoding="utf-8")
    new.rename(state_file)


def running(state_file: Path) -> dict[str, Any] | None:
    """What was remembered, if the very process that it names still runs."""
    try:
        state: dict[str, Any] = json.loads(state_file.read_text(encoding="utf-8"))
        return state if _identity(state["process"]["pid"]) == state["process"] else None
    except FileNotFoundError:
        return None


def stop(state_file: Path) -> bool:
    """End the process that a state file names; whether there was one."""
    state = running(state_file)
    if state is not None:
        os.kill(state["process"]["pid"], signal.SIGTERM)
        deadline = time.monotonic() + STOP_LIMIT_S
        while running(state_file) is not None:
            if time.monotonic() > deadline:
                os.kill(state["process"]["pid"], signal.SIGKILL)  # its own children die with it
            time.sleep(0.1)
    state_file.unlink(missing_ok=True)
    return state is not None


def _identity(pid: int) -> dict[str, int]:
    """A process by number and start time (clock ticks since boot), because numbers are used again."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return {"pid": pid, "started": int(fields[19])}
