"""The prose linter of `make lint` fails on every wording that the project does without."""

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


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
