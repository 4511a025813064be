"""The wheel in an environment of its own, used by a DAG of another project: an example of docs/airflow.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CONSTRAINTS = REPOSITORY / "tests" / "data" / "constraints" / "airflow-3.3.2-python-3.11.txt"
RECORDED = REPOSITORY / "tests" / "data" / "recorded" / "modular-4.0.8.tar"
RUN = """
import sys
from airflow.dag_processing.dagbag import DagBag
from airflow.utils.db import initdb
initdb()
bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
[dag] = bag.dags.values()
ended = dag.test(run_conf={"snapshot": sys.argv[2]})
print("ended:", ended.state, *sorted(f"{one.task_id}={one.state}" for one in ended.get_task_instances()))
import pulsar_advisor, pulsar_advisor_airflow
print("from:", pulsar_advisor.__file__, pulsar_advisor_airflow.__file__)
"""

pytestmark = [pytest.mark.full, pytest.mark.spark, pytest.mark.airflow]


@dataclass(frozen=True)
class Elsewhere:
    """An environment without the repository, and the folder beside it."""

    folder: Path

    @property
    def binaries(self) -> Path:
        return self.folder / "venv" / "bin"

    def call(self, program: str, *words: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTHON"))}
        environment |= {
            "PATH": f"{self.binaries}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": str(self.binaries / "python"),
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "AIRFLOW__PULSAR_ADVISOR__ROOT": str(self.folder / "root"),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        }
        command = [str(self.binaries / program), *words]
        ended = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture(scope="module", params=["locked", "constrained"])
def elsewhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    """The wheel, built from a copy of the repository that is gone afterwards.

    `locked`: with the locked packages. `constrained`: as docs/operations.md says for an existing Airflow, with
    constraints that are made as those of its release.
    """
    if request.param == "constrained" and sys.version_info[:2] != (3, 11):
        pytest.skip("the constraints are for Python 3.11")
    folder = tmp_path_factory.mktemp("elsewhere")
    source = folder / "source"
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, source / name, follow_symlinks=False)
    pip = [sys.executable, "-m", "pip"]
    build = [*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)]
    subprocess.run(build, check=True)
    shutil.rmtree(source)
    [wheel] = folder.glob("*.whl")
    found = subprocess.run([*pip, "config", "get", "global.index-url"], capture_output=True, text=True, check=False)
    index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("PIP_INDEX_URL") or found.stdout.strip()
    environment = {**os.environ, **({"UV_DEFAULT_INDEX": index} if index else {})}
    uv = str(Path(sys.executable).parent / "uv")
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder / "venv")], env=environment, check=True)
    install = [uv, "pip", "install", "-q", "--python", python]
    if request.param == "locked":
        lock = ["--require-hashes", "-r", str(REPOSITORY / "requirements.txt")]
        subprocess.run([*install, *lock], env=environment, check=True)
        subprocess.run([*install, "--no-deps", str(wheel)], env=environment, check=True)
    else:
        shutil.copy(CONSTRAINTS, folder / "constraints-3.11.txt")
        [but_three] = re.findall(
            r"^grep .*>constraints\.txt$", (REPOSITORY / "docs/operations.md").read_text(), re.MULTILINE
        )
        subprocess.run(["bash", "-c", but_three], cwd=folder, check=True)
        constraints = ["--constraint", str(folder / "constraints.txt")]
        subprocess.run([*install, "apache-airflow==3.3.2", str(wheel), *constraints], env=environment, check=True)
    return Elsewhere(folder)


def test_a_dag_of_another_project_runs_the_stages_without_the_repository(elsewhere: Elsewhere) -> None:
    (elsewhere.folder / "dags").mkdir()
    shutil.copy(REPOSITORY / "docs/examples/dags/stricter_threshold.py", elsewhere.folder / "dags")
    place = ("--root", str(elsewhere.folder / "root"), "--cluster", "prod-eu")
    snapshot = elsewhere.call("pulsar-advisor", "snapshots", "import", str(RECORDED), *place).strip()
    said = elsewhere.call("python", "-c", RUN, str(elsewhere.folder / "dags"), snapshot)
    ended, origin = (line for line in said.splitlines() if line.startswith(("ended:", "from:")))
    assert ended.startswith("ended: success"), said
    assert "failed" not in ended
    assert str(REPOSITORY) not in origin
    for result in ("tables/result", "validation", "plans", "simulations/result", "reports"):
        assert any((elsewhere.folder / "root").glob(f"{result}/cluster=prod-eu/snapshot={snapshot}/*")), result


def test_airflow_there_knows_the_connection_types(elsewhere: Elsewhere) -> None:
    said = elsewhere.call("airflow", "providers", "hooks", "--output", "plain")
    assert {"pulsar_admin", "pulsar_zookeeper"} <= set(said.split())


def test_the_bill_of_materials_has_every_locked_package_with_its_hashes(tmp_path: Path) -> None:
    file = tmp_path / "bill.json"
    subprocess.run(["make", "sbom", f"SBOM={file}"], cwd=REPOSITORY, check=True, capture_output=True)
    lock = (REPOSITORY / "requirements.txt").read_text()
    locked = {match[1]: match[2] for match in re.finditer(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE)}
    bill = json.loads(file.read_text())
    assert {each["name"]: each["version"] for each in bill["components"]} == locked
    hashes = {
        each["content"]
        for component in bill["components"]
        for reference in component["externalReferences"]
        for each in reference["hashes"]
    }
    assert hashes == set(re.findall(r"--hash=sha256:(\w+)", lock))
