"""A process in the background is found and ended through its state file, and never another one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import background


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_a_running_process_is_found_with_what_was_remembered(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    background.remember(tmp_path / "state.json", sleeper.pid, {"seed": 7})
    state = background.running(tmp_path / "state.json")
    assert state is not None
    assert state["seed"] == 7


def test_stop_does_not_touch_a_later_process_that_got_the_same_number(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    state_file = tmp_path / "state.json"
    background.remember(state_file, sleeper.pid, {})
    state = json.loads(state_file.read_text())
    state["process"]["started"] -= 1
    state_file.write_text(json.dumps(state))

    assert background.stop(state_file) is False

    assert sleeper.poll() is None
    assert not state_file.exists()


def test_without_a_state_file_nothing_runs_and_nothing_is_stopped(tmp_path: Path) -> None:
    assert background.running(tmp_path / "state.json") is None
    assert background.stop(tmp_path / "state.json") is False
