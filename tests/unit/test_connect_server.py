"""The server is started by a script that `make` runs, with the Spark that is installed beside it."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pyspark
import pytest

SCRIPT = Path(__file__).parents[2] / "jobs" / "connect_server.py"


def test_another_spark_in_the_environment_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"SPARK_HOME": "/opt/other-spark"}
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(os, "execv", lambda *_: None)
    monkeypatch.setattr("sys.argv", [str(SCRIPT)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert environment["SPARK_HOME"] == str(Path(pyspark.__file__).parent)
