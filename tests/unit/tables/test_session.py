"""What a session is asked for, and what it leaves on a Spark Connect server, without one."""

from __future__ import annotations

import os
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.connect.client.retries import Retrying
from pyspark.sql.connect.session import SparkSession

from pulsar_advisor.tables import session

GONE = "sc://127.0.0.1:1"


def test_a_command_does_not_wait_at_its_end_for_a_server_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    builder, at_the_end = SimpleNamespace(), list[partial[None]]()
    vars(builder).update(remote=lambda _: builder, config=lambda *_: builder, getOrCreate=lambda: SparkSession(GONE))
    monkeypatch.setattr(SparkSession, "version", "4.1.3")
    monkeypatch.setattr(session, "SparkSession", SimpleNamespace(builder=builder))
    monkeypatch.setattr(session.atexit, "register", lambda end, *of: at_the_end.append(partial(end, *of)))
    monkeypatch.setattr(Retrying, "_wait", lambda _: pytest.fail("it waits"))
    connected: Any = session.spark_session(GONE)
    for end in reversed(at_the_end):  # PySpark has its own
        end()
    assert connected.is_stopped


@pytest.mark.parametrize("umask", [0o002, 0o027, 0o077])
def test_spark_gives_its_files_the_permissions_that_this_process_gives_its_own(umask: int) -> None:
    before = os.umask(umask)
    try:
        settings = session.server_settings(15002)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert settings["spark.hadoop.fs.permissions.umask-mode"] == f"{umask:03o}"
