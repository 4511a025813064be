"""The packages of the product, drawn and listed from their imports, their first lines and the contract on layers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

import grimp

ROOTS: Final = ("pulsar_advisor", "pulsar_advisor_airflow")
CONTRACTS: Final = Path(__file__).parents[1] / "pyproject.toml"


def picture() -> str:
    """A Mermaid diagram: an arrow where a package imports another, unless a longer way leads there too."""
    imports = _imports()
    arrows = [
        f"    {package} --> {' & '.join(direct)}"
        for package, imported in sorted(imports.items())
        if (direct := sorted(one for one in imported if not _reached(imports, imported - {one}) & {one}))
    ]
    return "\n".join(["```mermaid", "flowchart TD", *arrows, "```"])


def table() -> str:
    """Every package of the contract on layers, the highest first, with the first line of its docstring."""
    contracts = tomllib.loads(CONTRACTS.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    rows = [
        f"| {number} | `{package.rpartition('.')[2]}` | {(import_module(package).__doc__ or '').splitlines()[0]} |"
        for number, layer in enumerate(reversed(layers), 1)
        for package in layer.split(" | ")
    ]
    return "\n".join(["| layer | package | what it is |", "| -- | -- | -- |", *reversed(rows)])


def _imports() -> Mapping[str, frozenset[str]]:
    """Package -> the other packages that its modules import."""
    graph = grimp.build_graph(*ROOTS, cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            importer, package = _package(module), _package(imported)
            if importer != package and "" not in (importer, package):
                found.setdefault(importer, set()).add(package)
    return {package: frozenset(imported) for package, imported in found.items()}


def _reached(imports: Mapping[str, frozenset[str]], packages: frozenset[str]) -> frozenset[str]:
    """What these packages import, directly or through others."""
    direct = frozenset[str]().union(*(imports.get(package, frozenset()) for package in packages))
    return direct | _reached(imports, direct) if direct else direct


def _package(module: str) -> str:
    root, _, rest = module.partition(".")
    return rest.partition(".")[0] if root == ROOTS[0] else root
