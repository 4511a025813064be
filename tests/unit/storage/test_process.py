"""What proves that a process has ended, and what doesn't."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from pulsar_advisor.storage.process import Process, has_ended, this_process


def test_this_process_has_not_ended() -> None:
    assert not has_ended(this_process())


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
