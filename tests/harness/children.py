"""Starts and ends the harness's child processes by handle, so that none outlives the process that started it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

# The kernel kills the child when we die without having stopped it (Linux).
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()


def start(command: Sequence[str | Path], log: Path, *, wrapper: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Start a child that writes stdout and stderr to `log`, in that log's folder.

    `wrapper` is a command that ends by executing its last arguments, so that the handle is the child's own.
    """
    # Innermost: entering a user namespace (a wrapper may) clears the signal.
    with log.open("ab") as output:
        return subprocess.Popen(
            [*wrapper, *_DIE_WITH_PARENT, *map(str, command)],
            cwd=log.parent,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def environment() -> dict[str, str]:
    """This process's environment, made fit for children: they find this package, and JVMs take only our flags."""
    inherited = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    return inherited | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}


def stop(process: subprocess.Popen[bytes], limit_s: float) -> None:
    """Ask a child to end, and wait for it at most this long."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(limit_s)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a child at once and reap it. Its data are throw-away, so there is nothing to flush."""
    process.kill()
    process.wait()
