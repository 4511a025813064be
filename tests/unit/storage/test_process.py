"""What proves that a process has ended, and what doesn't."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_advisor.storage.process import Process, has_ended, is_alive, this_process


def test_this_process_has_not_ended() -> None:
    assert not has_ended(this_process())


@pytest.mark.parametrize("name", [b"sch\xf6n", b"roll) R 1 (\xc3", b"two\nlines"])
def test_its_name_may_be_any_bytes(name: bytes) -> None:
    was_named, mine = Path("/proc/self/comm"), this_process()
    before = was_named.read_bytes()
    was_named.write_bytes(name)
    try:
        assert (has_ended(mine), is_alive(mine), this_process()) == (False, True, mine)
    finally:
        was_named.write_bytes(before)


def test_a_process_that_was_waited_for_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert has_ended(replace(this_process(), id=process.pid))


def test_a_process_that_was_never_waited_for_has_ended() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert has_ended(replace(this_process(), id=child))
    os.waitpid(child, 0)


@pytest.mark.parametrize(
    "unprovable",
    [Process("here", 2**22), replace(this_process(), id=2**22, namespace="another boot pid:[4026531836]")],
    ids=["no namespace", "another namespace"],
)
def test_where_a_process_can_not_be_seen_nothing_is_proved(unprovable: Process) -> None:
    assert not has_ended(unprovable)


def test_an_id_that_was_given_to_another_process_is_no_life() -> None:
    assert has_ended(replace(this_process(), began="0"))
