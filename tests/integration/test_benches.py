"""The benchmarks still run: on small clusters, as nothing here is timed."""

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.stages.capture import run as capture
from pulsar_advisor.storage.results import read_document
from pulsar_advisor.storage.root import MANIFEST, Root

pytestmark = [pytest.mark.spark, pytest.mark.slow]

REPOSITORY = Path(__file__).parents[2]
BENCH = REPOSITORY / "bench"


def printed_by(code: str, results: Path) -> str:
    """What this code of a benchmark prints; it records in a copy of the results, as pages show those of large ones."""
    shutil.copytree(REPOSITORY / "docs" / "results", results)
    elsewhere = f"import pathlib, results; results.RESULTS = pathlib.Path({str(results)!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(BENCH), str(REPOSITORY / "tests")])}
    command = [sys.executable, "-c", f"{elsewhere}; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("script", "size", "printed"),
    [
        ("bench_capture.py", ("2", "20", "2000"), "| 2 | 20 | 2,000 |"),
        ("bench_tables.py", ("10000",), "| 10,000 |"),
        ("bench_checks.py", ("10", "640", "6400"), "each expectation alone"),
    ],
)
def test_a_benchmark_prints_what_it_measured(tmp_path: Path, script: str, size: tuple[str, ...], printed: str) -> None:
    path = str(BENCH / script)
    code = f"import runpy, sys; sys.argv = {[path, *size]!r}; runpy.run_path({path!r}, run_name='__main__')"
    assert printed in printed_by(code, tmp_path / "results")


def test_a_large_ledger_is_audited_in_little_memory(tmp_path: Path) -> None:
    """Each of 100,000 events and 49,000 rows as an object of SQLAlchemy's would take 4 KiB."""
    printed = printed_by("import bench_ledger; bench_ledger.main(100_000, 10)", tmp_path / "results")
    (audited,) = (line for line in printed.splitlines() if "`audit`" in line)
    *_, code, _seconds, _processor_s, mebibytes = (cell.strip() for cell in audited.strip("|").split("|"))
    assert code == "0"
    assert int(mebibytes) < 200


def test_a_synthetic_cluster_answers_whatever_a_capture_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    large_cluster = import_module("large_cluster")
    root = Root(str(tmp_path), "large")
    with large_cluster.served(large_cluster.LargeCluster(2, 20, 200)) as broker:
        snapshot = capture(CaptureOptions(admin=AdminConnection(admin_urls=(f"http://{broker}",))), root)
    assert read_document(snapshot.folder("raw") / MANIFEST, Manifest).failures == ()
    assert "KeyError" not in capfd.readouterr().err
