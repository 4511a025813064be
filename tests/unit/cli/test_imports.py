"""Help, listings and refusals answer at once: they load neither Spark nor Great Expectations nor numpy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("pyspark", "great_expectations", "numpy", "pandas", "pyarrow", "scipy")
PROGRAM = f"""
import sys
from pulsar_advisor.cli import exit_code
exit_code(sys.argv[1:])
sys.exit(", ".join(name for name in {HEAVY} if name in sys.modules) or 0)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["run", "--help"],
        ["snapshots", "list"],
        ["plans"],
        ["history"],
        ["frobnicate"],
        ["apply", "c8b31b82"],
        ["approve", "c8b31b82", "--as", "bob"],
        ["verify", "c8b31b82"],
        ["recommend", "--max-unloads", "-3"],
        ["run", "--shedder", "Nope"],
    ],
    ids=" ".join,
)
def test_an_answer_that_needs_no_figures_loads_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    place = [] if "--help" in words else ["--root", str(tmp_path), "--cluster", "c"]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words, *place], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr.splitlines()[-1:] if ended.returncode else []) == (0, [])
