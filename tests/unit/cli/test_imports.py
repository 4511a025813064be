"""Help, listings and refusals answer at once: each loads only what its answer takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from pulsar_advisor.execution.ledger.opening import open_ledger

HEAVY = ("pyspark", "great_expectations", "numpy", "pandas", "pyarrow", "scipy")
NEEDED_LATER = (
    "cyclopts.completion",
    "rich.markdown",
    "markdown_it",
    "fsspec",
    "upath",
    "sqlalchemy",
    "alembic",
    "requests",
    "pydantic",
)
PROGRAM = """
import sys
from pulsar_advisor.cli import exit_code
without, *words = sys.argv[1:]
exit_code(words)
sys.exit(", ".join(name for name in without.split() if name in sys.modules) or 0)
"""


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "words",
    [
        ["plans"],
        ["runs"],
        ["apply", "c8b31b82"],
        ["approve", "c8b31b82", "--as", "bob"],
        ["verify", "c8b31b82"],
    ],
    ids=" ".join,
)
def test_an_answer_that_needs_no_figures_loads_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    assert loaded(words, HEAVY, tmp_path) == []


def test_a_ledger_of_this_release_is_opened_without_what_would_migrate_it(tmp_path: Path) -> None:
    open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite").close()
    assert loaded(["plans"], ["sqlalchemy", "alembic"], tmp_path) == ["sqlalchemy"]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["run", "--help"],
        ["snapshots", "list"],
        ["frobnicate"],
        ["recommend", "--max-unloads", "-3"],
        ["run", "--shedder", "Nope"],
    ],
    ids=" ".join,
)
def test_an_answer_that_opens_no_file_loads_no_library_for_files_ledgers_or_markdown_either(
    words: list[str], tmp_path: Path
) -> None:
    assert loaded(words, (*HEAVY, *NEEDED_LATER), tmp_path) == []


def loaded(words: list[str], modules: Iterable[str], root: Path) -> list[str]:
    """Those of the modules that a call in a process of its own has imported by its end."""
    place = [] if "--help" in words else ["--root", str(root), "--cluster", "c"]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, " ".join(modules), *words, *place],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return ended.stderr.splitlines()[-1].split(", ") if ended.returncode else []
