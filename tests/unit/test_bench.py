"""The benchmarks, which no other test runs, import what there is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("jobs", "plugins", "tests", "bench")


def source_of(module: str) -> Path | None:
    """The file of a module of this repository; None for a library's."""
    file = Path(*module.split("."))
    found = (ROOT / source / name for source in SOURCES for name in (file.with_suffix(".py"), file / "__init__.py"))
    return next(filter(Path.is_file, found), None)


def names_of(tree: ast.Module) -> Iterator[str]:
    """What a module defines or imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


@pytest.mark.parametrize("bench", sorted((ROOT / "bench").glob("*.py")), ids=lambda path: path.stem)
def test_it_imports_what_there_is(bench: Path) -> None:
    missing = []
    for node in ast.walk(ast.parse(bench.read_text())):
        if isinstance(node, ast.ImportFrom) and (source := source_of(node.module or "")):
            defined = {*names_of(ast.parse(source.read_text()))}
            names = [alias.name for alias in node.names if alias.name not in defined]
            missing += [f"{node.module}.{name}" for name in names if source_of(f"{node.module}.{name}") is None]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pulsar_advisor"):
            missing.append(node.module)
    assert not missing
