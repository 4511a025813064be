from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.root import MANIFEST, Root
from pulsar_advisor.tables import job
from pulsar_advisor.tables.job import exit_code_of, run_job

SNAPSHOT = "20261121T083000Z"


def never(*_: Any) -> None:
    raise AssertionError("the stage must not be reached")


def test_a_snapshot_that_does_not_exist_is_one_line_and_exit_code_2_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--root", str(tmp_path), "--cluster", "test", "--snapshot", SNAPSHOT]
    assert run_job("normalize", never, arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"normalize: there is no snapshot {SNAPSHOT} of cluster 'test'")


def test_what_a_client_of_an_object_store_raises_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def refused() -> None:
        raise OSError("SlowDown")

    assert exit_code_of("normalize", refused) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("normalize: can't read or write the output or a file of the root: SlowDown")


def test_a_job_waits_for_the_one_that_writes_the_same_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root(str(tmp_path), "test")
    write_file(root.snapshot(SNAPSHOT).folder("raw") / MANIFEST, b"{}")
    folder = root.snapshot(SNAPSHOT).folder("validation")
    other = ExitStack()
    naps = iter([lambda: None, other.close])  # the other one ends during the second
    monkeypatch.setattr(job, "spark_session", lambda *_, **__: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(job, "raw_bytes", lambda *_: 0)
    monkeypatch.setattr(job.time, "sleep", lambda _seconds: next(naps)())

    def validate(*_: Any) -> None:
        with held(folder, SNAPSHOT, f"snapshot {SNAPSHOT} is being validated"):
            write_file(folder / "result.json", b"{}")

    with other:
        other.enter_context(held(folder, SNAPSHOT, "validated"))
        assert run_job("validate", validate, ["--root", root.url, "--cluster", "test", "--snapshot", SNAPSHOT]) == 0
    assert (folder / "result.json").exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"validate: waiting, because snapshot {SNAPSHOT} is being validated by another process")
