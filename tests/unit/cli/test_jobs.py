"""Spark jobs that take the options of a verb."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from pulsar_advisor.cli.jobs import run_requested

JOBS = Path(__file__).parents[3] / "jobs"


def never(*_: Any) -> None:
    raise AssertionError("the stage must not be reached")


@pytest.mark.parametrize(
    ("job", "words", "said"),
    [
        ("recommend", ["--max-unloads=10.5"], "--max-unloads '10.5' is not a whole number"),
        ("recommend", ["--seed=1", "--seed=2"], "Parameter --seed specified multiple times."),
        ("recommend", ["--set=loadBalancerX=1"], "'loadBalancerX' is not a setting that affects recommendations"),
        ("recommend", ["--brokers=a"], "--brokers, --bundles, --to, --ceiling and --onto are about a goal: name"),
        ("simulate", ["--cycles=x"], "--cycles 'x' is not a whole number"),
    ],
)
def test_an_unusable_option_is_one_line_and_exit_code_2_before_spark_starts(
    job: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Airflow retries exit code 1, which a stack trace has."""
    app = run_path(str(JOBS / f"{job}.py"))["app"]
    assert run_requested(job, app, never, [*words, "--root=r", "--cluster=c", "--snapshot=latest"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{job}: {said}")
