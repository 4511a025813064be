"""The benchmarks still run: on small clusters, as nothing here is timed."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.full]

BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.parametrize(
    ("script", "size", "printed"),
    [
        ("bench_capture.py", ("2", "20", "2000"), "| 2 | 20 | 2,000 |"),
        ("bench_tables.py", ("10000",), "| 10,000 |"),
        ("bench_checks.py", ("10", "640", "6400"), "each expectation alone"),
    ],
)
def test_a_benchmark_prints_what_it_measured(script: str, size: tuple[str, ...], printed: str) -> None:
    done = subprocess.run([sys.executable, str(BENCH / script), *size], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout
