"""Identifies the process that holds something, so that another process can prove that it has ended.

A process id is valid only within one PID namespace of one boot, and is reused after its process ends.
So a proof needs the boot id, the inode of the PID namespace, and the start time of the process.
Source: proc(5), pid_namespaces(7).
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_ENDED: Final = frozenset("ZX")
"""States of a process that has ended but not been waited for, and of one that is exiting."""


@dataclass(frozen=True)
class Process:
    """A process as others can identify it. Without `namespace` (not Linux, foreign `/proc`) nothing can be proved."""

    host: str
    """For people: host names are not unique."""
    id: int
    namespace: str = ""
    """Boot id and PID namespace, within which `id` means something."""
    began: str = ""
    """Clock ticks from boot to its start."""


def this_process() -> Process:
    """The calling process."""
    return Process(platform.node(), os.getpid(), _namespace(os.getpid()), _began(os.getpid()))


def has_ended(process: Process) -> bool:
    """Whether a process is certainly gone; also false if that can't be determined from here."""
    return _can_be_seen(process) and _began(process.id) != process.began


def is_alive(process: Process) -> bool:
    """Whether a process is certainly not gone; also false if that can't be determined from here."""
    return _can_be_seen(process) and _began(process.id) == process.began


def _can_be_seen(process: Process) -> bool:
    return bool(process.namespace) and process.namespace == _namespace(os.getpid())


@cache  # a forked child has another id, but the same namespace
def _namespace(process: int) -> str:
    try:
        # /proc may belong to an outer namespace, where this process has a different id.
        if (_PROC / "self").readlink().name != str(process):
            return ""
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _began(process: int) -> str:
    """Start time, field 22 of the process's `stat`; empty if it doesn't exist."""
    try:
        # The second field, the name in parentheses, may be any bytes, such as half a character.
        state, *fields = (_PROC / str(process) / "stat").read_bytes().rpartition(b")")[2].decode().split()
    except (OSError, ValueError):
        return ""
    return "" if state in _ENDED else fields[18]
