"""The pages name files and folders of the repository that exist, so that a move of one is noticed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
HISTORY = "CHANGELOG.md"
NAMED = re.compile(r"`((?:bench|dags|docs|expectations|jobs|plugins|tests)/[a-z\d_./*-]+)`")
"""In lower case and whole: `tests/scenarios/clusters/NAME.yaml` is for the reader to name."""

TABLE = re.compile(r"\|.*\|\n\|[ :|-]+\|\n")
"""How one begins; Markdown takes rows after an empty line, or wrapped by hand, for a paragraph."""

PAGES = [page for page in (*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")) if page.name != HISTORY]


def named(page: Path) -> list[str]:
    return sorted(set(NAMED.findall(page.read_text(encoding="utf-8"))))


def test_pages_name_files_of_the_repository() -> None:
    assert "tests/spark/mutations.py" in named(REPOSITORY / "CONTRIBUTING.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_what_a_page_names_exists(page: Path) -> None:
    assert [name for name in named(page) if not any(REPOSITORY.glob(name.rstrip("/")))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_row_of_a_page_is_in_a_table(page: Path) -> None:
    blocks = page.read_text(encoding="utf-8").split("\n\n")
    assert [block for block in blocks if block.startswith("| ") and not TABLE.match(block)] == []


def test_a_broken_link_fails_the_build_of_the_site() -> None:
    [build] = re.findall(r"mkdocs build ([^#\n]*)", (REPOSITORY / "Makefile").read_text(encoding="utf-8"))
    assert build.split() == ["--strict"], "with --quiet MkDocs drops its warnings, and --strict finds none to count"


def test_a_commit_of_generated_pages_is_not_held_up_by_their_form() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    generated = re.findall(r"\$\(filter-out ([^,]+),", makefile)[0].split()
    [local] = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    patterns = [hook["exclude"] for hook in local["hooks"] if hook.get("types") == ["markdown"]]
    assert [page for page in generated for pattern in patterns if not re.match(pattern, page)] == []
