"""What `make up` makes of the local cluster and of its own files; the rest is shown by tests/e2e/test_airflow.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import standalone


def write_state(folder: Path, pid: int, token_file: Path | None = None) -> Path:
    state = {
        "process": {"pid": pid, "started": 1},
        "admin_urls": ["http://127.0.0.1:1", "http://127.0.0.2:1"],
        "zookeeper": "127.0.0.1:2",
        "token_file": str(token_file) if token_file else None,
    }
    file = folder / "state.json"
    file.write_text(json.dumps(state))
    return file


def test_the_local_cluster_becomes_a_connection(tmp_path: Path) -> None:
    token = tmp_path / "admin.token"
    token.write_text("eyJ.a.b\n")
    connection = standalone.local_cluster(write_state(tmp_path, os.getpid(), token))
    assert connection == {
        "conn_type": "pulsar_admin",
        "password": "eyJ.a.b",
        "extra": {"admin_urls": "http://127.0.0.1:1,http://127.0.0.2:1", "zookeeper": "127.0.0.1:2"},
    }


def test_without_a_local_cluster_there_is_no_connection(tmp_path: Path) -> None:
    assert standalone.local_cluster(tmp_path / "state.json") is None


def test_a_cluster_whose_process_has_ended_is_none(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert standalone.local_cluster(write_state(tmp_path, ended.pid)) is None


def test_passwords_are_kept_and_readable_by_their_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "passwords.json"
    first = standalone._passwords(file)
    assert first.keys() == standalone.USERS.keys()
    assert standalone._passwords(file) == first
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_an_airflow_that_does_not_come_up_is_reported_with_its_log_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "sqlite:////nowhere/airflow.db"}
    with (
        pytest.raises(standalone.DidNotStart, match=r"Airflow ended with code \d+; .*standalone.log says why"),
        standalone.running(Path(__file__).parents[2], tmp_path / "home", tmp_path / "root", environment=failing),
    ):
        pytest.fail("it is not running")
