from pathlib import Path
from typing import Any

import pytest

from pulsar_advisor.tables.job import run_job


def never(*_: Any) -> None:
    raise AssertionError("the stage must not be reached")


def test_a_snapshot_that_does_not_exist_is_one_line_and_exit_code_2_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--root", str(tmp_path), "--cluster", "test", "--snapshot", "20261121T083000Z"]
    assert run_job("normalize", never, arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("normalize: there is no snapshot 20261121T083000Z of cluster 'test'")
