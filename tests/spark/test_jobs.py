"""The entry points for spark-submit, each a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_advisor.storage.root import RESULT, Root
from snapshots import skewed_modular_cluster

pytestmark = pytest.mark.spark

JOBS = Path(__file__).parents[2] / "jobs"
RESULTS = {"normalize": "tables/result", "validate": "validation"}


@pytest.mark.parametrize("jobs", [["normalize"], pytest.param(["normalize", "validate"], marks=pytest.mark.full)])
def test_each_job_ends_well_once_its_result_file_is_written_and_prints_nothing(jobs: list[str], tmp_path: Path) -> None:
    root = Root(str(tmp_path), "test")
    snapshot = skewed_modular_cluster().write(root)
    for job in jobs:
        command = [sys.executable, str(JOBS / f"{job}.py"), "--root", str(tmp_path), "--cluster", "test"]
        command += ["--snapshot", snapshot, "--master", "local[2]"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert (root.folder(RESULTS[job], snapshot) / RESULT).exists()
