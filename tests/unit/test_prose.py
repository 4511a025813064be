"""The prose linter of `make lint` fails on every wording that the project does without, and pages stay few words."""

import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

MAX_WORDS = 29_700
"""With the pages of the strategies 34,000, as much as somebody reads: whoever adds a sentence finds one that can go."""

MADE = {"CHANGELOG.md", "checks.md", "lint.md", "tables.md", "index.md"}
"""The pages that `make docs` makes as a whole, and the history."""
NO_PROSE = re.compile(
    r"<!-- ([^>]*): made by make docs -->.*?<!-- end of \1 -->|^ *```.*?^ *```$", re.DOTALL | re.MULTILINE
)
"""Generated parts of pages, and code."""


def words() -> list[str]:
    settings = configparser.ConfigParser()
    settings.read(REPOSITORY / ".blocklint")
    return [word for words in ("wordlist", "exactlist") for word in settings["blocklint"][words].split(",")]


def lint(page: Path, prose: str) -> subprocess.CompletedProcess[str]:
    page.write_text(prose)
    blocklint = Path(sys.executable).with_name("blocklint")
    return subprocess.run([blocklint, page], cwd=REPOSITORY, capture_output=True, text=True, check=False)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("word", words())
def test_a_banned_wording_fails_the_lint(tmp_path: Path, word: str) -> None:
    result = lint(tmp_path / "page.md", f"A broker {word} here.\n")

    assert (result.returncode, f'use of "{word}"' in result.stdout) == (1, True)


def test_plain_prose_passes(tmp_path: Path) -> None:
    assert lint(tmp_path / "page.md", "Every broker appears exactly once.\n").returncode == 0


def test_code_that_compares_with_none_passes(tmp_path: Path) -> None:
    assert lint(tmp_path / "module.py", "if owner is None:\n    raise ValueError\n").returncode == 0


def test_the_pages_have_no_more_words_than_somebody_reads() -> None:
    folders = (REPOSITORY, REPOSITORY / "docs", REPOSITORY / "docs" / "examples")
    pages = [page for folder in folders for page in folder.glob("*.md") if page.name not in MADE]

    assert sum(len(NO_PROSE.sub("", page.read_text(encoding="utf-8")).split()) for page in pages) <= MAX_WORDS
