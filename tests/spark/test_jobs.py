import json
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_advisor.storage import RESULT, Root
from snapshots import skewed_modular_cluster

pytestmark = pytest.mark.spark

JOBS = Path(__file__).parents[2] / "jobs"


def test_each_job_ends_well_once_its_result_file_is_written_and_prints_nothing(tmp_path: Path) -> None:
    root = Root(str(tmp_path), "test")
    snapshot = skewed_modular_cluster().write(root)
    for job in ("normalize", "validate"):
        command = [sys.executable, str(JOBS / f"{job}.py"), "--root", str(tmp_path), "--cluster", "test"]
        command += ["--snapshot", snapshot, "--master", "local[2]"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    validation = json.loads((root.folder("validation", snapshot) / RESULT).read_text())
    assert validation["success"]
