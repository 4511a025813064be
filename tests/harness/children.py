"""Starts and ends the harness's child processes by handle, so that none outlives the process that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def start(command: Sequence[str | Path], log: Path, *, directory: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a child that writes stdout and stderr to `log`; the kernel kills it if this process dies first."""
    # Inherited by `harness up` from a user's shell, this makes every JVM print to stderr and may change its flags.
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    with log.open("ab") as output:
        return subprocess.Popen(
            [str(part) for part in command],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a child at once and reap it. Its data are throw-away, so there is nothing to flush."""
    process.kill()
    process.wait()
