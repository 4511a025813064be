"""The entry points for spark-submit, each a process of its own."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from upath import UPath

from harness.ports import free_port
from pulsar_advisor.storage.root import RESULT, Root, Snapshot
from pulsar_advisor.tables.schemas import CHECKS, TABLES
from snapshots import skewed_modular_cluster

pytestmark = pytest.mark.spark

JOBS = Path(__file__).parents[2] / "jobs"
RESULTS = {"normalize": "tables/result", "validate": "validation"}
FOUND = {"normalize": "has ", "validate": "may be used: "}


@pytest.mark.parametrize("jobs", [["normalize"], pytest.param(["normalize", "validate"], marks=pytest.mark.full)])
def test_each_job_ends_well_once_its_result_file_is_written_and_logs_what_it_found(
    jobs: list[str], tmp_path: Path
) -> None:
    snapshot = skewed_modular_cluster().write(Root(str(tmp_path), "test"))
    logged = run_jobs(jobs, snapshot)
    for job in jobs:
        assert (snapshot.folder(RESULTS[job]) / RESULT).exists()
        assert logged[job][-1].startswith(f"{job}: snapshot {snapshot} {FOUND[job]}")


@pytest.mark.full
def test_one_application_for_tables_and_checks_writes_what_two_write(tmp_path: Path) -> None:
    written = []
    for jobs in (["normalize", "validate"], ["snapshot"]):
        snapshot = skewed_modular_cluster().write(Root(str(tmp_path / jobs[0]), "test"))
        run_jobs(jobs, snapshot)
        written.append(content(snapshot))
    assert written[0] == written[1]


@pytest.mark.full
def test_a_connect_server_writes_what_an_application_writes(connect_server: str, tmp_path: Path) -> None:
    written = []
    for place, options in (("classic", ()), ("connect", ("--remote", connect_server))):
        snapshot = skewed_modular_cluster().write(Root(str(tmp_path / place), "test"))
        run_jobs(["snapshot", "recommend"], snapshot, *options)
        plans = sorted(file.name for file in _files(snapshot.folder("plans")))
        assert len(plans) > 1
        written.append((content(snapshot), plans))
    assert written[0] == written[1]


@pytest.mark.full
def test_a_connect_server_keeps_nothing_of_a_command_that_has_ended(connect_server: str, tmp_path: Path) -> None:
    root = Root(str(tmp_path), "test")
    skewed_modular_cluster().write(root)
    command = [sys.executable, "-m", "pulsar_advisor", "normalize", "--root", root.url, "--cluster", "test"]
    command += ["--remote", f"{connect_server}/;session_id=0f0e0d0c-0b0a-4908-8706-050403020100"]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert "SESSION_CLOSED" in second.stderr


@pytest.fixture
def connect_server() -> Iterator[str]:
    """The address of a Spark Connect server on loopback."""
    port = free_port()
    command = [sys.executable, str(JOBS / "connect_server.py"), str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while not listens(port):
                assert server.poll() is None, "the server ended"
                time.sleep(0.2)
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.terminate()


def listens(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def run_jobs(jobs: Sequence[str], snapshot: Snapshot, *options: str) -> dict[str, list[str]]:
    """The lines that each job logged itself."""
    logged = {}
    for job in jobs:
        command = [sys.executable, str(JOBS / f"{job}.py"), "--root", snapshot.root.url, "--cluster", "test"]
        command += ["--snapshot", snapshot.id, *(options or ("--master", "local[2]"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        logged[job] = [line for line in done.stderr.splitlines() if line.startswith(f"{job}: ")]
    return logged


def content(snapshot: Snapshot) -> dict[str, list[object]]:
    """The rows of all tables in their order, with the tables' schemas, and the bytes of both results.

    Parquet's writer lists a column's encodings in an order that depends on the process, so its bytes vary.
    """
    stages = [f"tables/{table.name}" for table in (*TABLES, CHECKS)] + list(RESULTS.values())
    return {stage: [_read(file) for file in _files(snapshot.folder(stage))] for stage in stages}


def _files(folder: UPath) -> list[Path]:
    """Spark begins the name of a table's file with its number, and ends it at random."""
    return sorted(file for file in Path(str(folder)).iterdir() if not file.name.startswith((".", "_")))


def _read(file: Path) -> object:
    if file.suffix != ".parquet":
        return file.read_bytes()
    rows = pq.ParquetFile(file).read()
    return rows.schema.to_string(), rows.to_pylist()
