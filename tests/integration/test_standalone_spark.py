"""The jobs on a Spark cluster that isn't ours, a master and a worker on loopback: the package travels as a zip.

Driver and executors run a Python that has everything of requirements-executor.txt but not this package.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from harness.standalone_spark import SPARK_HOME, running_spark, spark_environment
from pulsar_advisor.storage.root import RESULT, Root, Snapshot
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.schemas import TABLES
from snapshots import skewed_modular_cluster
from written_tables import broker, bundle, written

pytestmark = [pytest.mark.spark, pytest.mark.full]

JOBS = Path(__file__).parents[2] / "jobs"
EVERYTHING = ("--shedder", "all", "--placement", "all", "--splits")
STAGES = {"normalize": (), "validate": (), "recommend": EVERYTHING}


@dataclass(frozen=True)
class Standalone:
    """A running cluster, and what is submitted to it."""

    master: str
    python: Path
    package: Path

    def submit(self, job: str, master: str | None, *arguments: str) -> None:
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master or self.master]
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "WARN",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
        }
        command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        command += ["--executor-memory", "1g", "--driver-memory", "1g"]
        command += ["--py-files", str(self.package), str(JOBS / f"{job}.py"), *arguments]
        python = str(self.python)
        done = subprocess.run(
            command,
            env=spark_environment(PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=python),
            # From elsewhere, so that nothing is imported from the repository.
            cwd=self.package.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def python_without_the_package(folder: Path) -> Path:
    """An environment that sees all installed packages, but not the editable one: that takes a .pth of its own."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "bin" / "python"
    found = subprocess.run([python, "-c", "import pulsar_advisor"], cwd=folder, capture_output=True, check=False)
    assert b"ModuleNotFoundError" in found.stderr
    return python


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    folder = tmp_path_factory.mktemp("standalone")
    package = Path(shutil.make_archive(str(folder / "pulsar_advisor"), "zip", JOBS, "pulsar_advisor"))
    python = python_without_the_package(folder / "python")
    with running_spark(folder) as cluster:
        yield Standalone(cluster.master, python, package)


@dataclass(frozen=True)
class Line:
    snapshot: Snapshot

    def files(self, stage: str) -> dict[str, str]:
        """Name -> SHA-256 of what a stage wrote."""
        folder = Path(str(self.snapshot.folder(stage)))
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.is_file()}


def carried_out(folder: Path, cluster: Standalone, master: str | None = None) -> Line:
    root = Root(str(folder), "test")
    snapshot = skewed_modular_cluster().write(root)
    for stage in STAGES:
        place = ("--root", root.url, "--cluster", root.cluster)
        cluster.submit(stage, master, *place, "--snapshot", snapshot.id, *STAGES[stage])
    return Line(snapshot)


@pytest.fixture(scope="module")
def on_cluster(standalone: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Line:
    return carried_out(tmp_path_factory.mktemp("cluster"), standalone)


@pytest.fixture(scope="module")
def on_one_machine(standalone: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Line:
    return carried_out(tmp_path_factory.mktemp("local"), standalone, "local[2]")


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_the_tables_hold_the_same_rows(on_cluster: Line, on_one_machine: Line, table: str) -> None:
    there, here = (
        sorted(map(str, read_table(line.snapshot, table).to_pylist())) for line in (on_cluster, on_one_machine)
    )
    assert there == here


def test_results_and_plans_are_the_same_byte_for_byte(on_cluster: Line, on_one_machine: Line) -> None:
    assert on_cluster.files("plans")
    for stage in ("tables/result", "plans"):
        assert on_cluster.files(stage) == on_one_machine.files(stage)


def test_days_of_all_clusters_are_folded_into_the_same_bytes(standalone: Standalone, tmp_path: Path) -> None:
    days = ("20261120", "20261121", "20261122")
    for folder in ("cluster", "local"):
        for cluster, day in product(("eu", "us"), days):
            owner = bundle("t/n", 0, 0xFFFFFFFF, f"{day}:8080", moved=False)
            rows = {"brokers": [broker(f"{day}:8080", owned_bundles=1)], "bundles": [owner]}
            written(tmp_path / folder, cluster=cluster, snapshot=f"{day}T080000Z", **rows)
    for folder, master in (("cluster", None), ("local", "local[2]")):
        standalone.submit("fold", master, "--root", str(tmp_path / folder), "--before", days[2])
    there, here = (
        {
            path.relative_to(tmp_path / folder): path.read_bytes()
            for path in (tmp_path / folder).rglob("history/*/*/*/*")
        }
        for folder in ("cluster", "local")
    )
    assert len([path for path in here if path.name == RESULT]) == 4
    assert there == here
