"""The packages of the product, drawn and listed from their imports, their first lines and the contract on layers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

import grimp

ROOTS: Final = ("pulsar_advisor", "pulsar_advisor_airflow")
CONTRACTS: Final = Path(__file__).parents[1] / "pyproject.toml"

ROW, BOX, GAP = 58, 24, 16
"""In pixels: the heights of a layer and of a package's box, and what is left between boxes."""
SWEEPS: Final = 24
"""How often the boxes of a row move to the mean of what they are joined to, above and below by turns."""


class Place(NamedTuple):
    """A package in its layer, or where the arrow to a package crosses a layer in between (`to` not empty)."""

    package: str
    layer: int
    to: str = ""

    @property
    def width(self) -> float:
        """In pixels."""
        return 2.0 if self.to else 16 + 7.2 * len(self.package)


def table() -> str:
    """Every package of the contract on layers, the highest first, with the first line of its docstring."""
    rows = [
        f"| {number} | `{_short(package)}` | {(import_module(package).__doc__ or '').splitlines()[0]} |"
        for number, layer in reversed([*enumerate(reversed(_layers()), 1)])
        for package in layer
    ]
    return "\n".join(["| layer | package | what it is |", "| -- | -- | -- |", *rows])


def picture() -> str:
    """An SVG: a line down from each package to those that it imports, unless a longer path leads there as well."""
    layers = [[_short(package) for package in layer] for layer in _layers()]
    at = {package: Place(package, number) for number, layer in enumerate(layers) for package in layer}
    lines = [
        [at[above], *(Place(above, row, to=below) for row in range(at[above].layer + 1, at[below].layer)), at[below]]
        for above, imported in sorted(_direct(_imports()).items())
        for below in sorted(imported)
    ]
    x = _columns(len(layers), {*at.values(), *(place for line in lines for place in line)}, lines)
    left = min(x[place] - place.width / 2 for place in x) - GAP
    width, height = max(x[place] + place.width / 2 for place in x) + GAP - left, ROW * len(layers)
    frame = f'width="{width:.0f}" height="{height}" viewBox="{left:.0f} 0 {width:.0f} {height}"'
    font = 'font-family="monospace" font-size="12" text-anchor="middle"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {frame} {font}>',
            "<title>The packages and what they import</title>",
            '<g fill="none" stroke="#8a8a99">',
            *(f'<path d="{_path([(x[place], place.layer) for place in line])}"/>' for line in lines),
            '</g><g fill="#eef0fb" stroke="#5c6bc0">',
            *(_box(place, x[place]) for place in at.values()),
            "</g></svg>\n",
        ]
    )


def _columns(rows: int, places: set[Place], lines: Sequence[Sequence[Place]]) -> dict[Place, float]:
    """Where each place is, so that lines are short and nothing overlaps."""
    joined: dict[Place, list[Place]] = {place: [] for place in places}
    for line in lines:
        for upper, lower in pairwise(line):
            joined[upper].append(lower)
            joined[lower].append(upper)
    x = dict.fromkeys(places, 0.0)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in range(rows) if down else reversed(range(rows)):
            wished = {
                place: fmean([x[other] for other in joined[place] if (other.layer < row) == down] or [x[place]])
                for place in places
                if place.layer == row
            }
            order = sorted(wished, key=lambda place: (wished[place], place))
            x.update(
                zip(order, _apart([wished[place] for place in order], [place.width for place in order]), strict=True)
            )
    return x


def _apart(wished: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Centres near those wished for, in their order, that keep boxes of these widths apart."""
    found: list[float] = []
    for number, centre in enumerate(wished):
        least = found[-1] + (widths[number - 1] + widths[number]) / 2 + GAP if found else centre
        found.append(max(centre, least))
    shift = fmean(wish - centre for wish, centre in zip(wished, found, strict=True))
    return [centre + shift for centre in found]


def _path(points: Sequence[tuple[float, int]]) -> str:
    """Curves between rows, straight down through the rows in between."""
    (first, row), *others = points
    text, y = f"M{first:.0f} {ROW * row + (ROW + BOX) / 2:.0f}", ROW * row + (ROW + BOX) / 2
    last = first
    for x, row in others:
        top = ROW * row + (ROW - BOX) / 2
        middle = (y + top) / 2
        text += f"C{last:.0f} {middle:.0f} {x:.0f} {middle:.0f} {x:.0f} {top:.0f}"
        y, last = top + BOX, x
        if (x, row) != others[-1]:
            text += f"V{y:.0f}"
    return text


def _box(place: Place, x: float) -> str:
    left, top = x - place.width / 2, ROW * place.layer + (ROW - BOX) / 2
    box = f'<rect x="{left:.0f}" y="{top:.0f}" width="{place.width:.0f}" height="{BOX}" rx="4"/>'
    return f'{box}<text x="{x:.0f}" y="{top + 16:.0f}" fill="#1a237e" stroke="none">{place.package}</text>'


def _layers() -> list[list[str]]:
    """The packages of the contract on layers, the highest layer first."""
    contracts = tomllib.loads(CONTRACTS.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    return [layer.split(" | ") for layer in layers]


def _imports() -> Mapping[str, frozenset[str]]:
    """Package -> the other packages that its modules import."""
    graph = grimp.build_graph(*ROOTS, cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            importer, package = _package(module), _package(imported)
            if importer != package and not {importer, package} & {"", "__main__"}:
                found.setdefault(importer, set()).add(package)
    return {package: frozenset(imported) for package, imported in found.items()}


def _direct(imports: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The imports that no longer path leads to as well."""
    return {package: imported - _reached(imports, imported) for package, imported in imports.items()}


def _reached(imports: Mapping[str, frozenset[str]], packages: frozenset[str]) -> frozenset[str]:
    """What these packages import, directly or through others."""
    direct = frozenset[str]().union(*(imports.get(package, frozenset()) for package in packages))
    return direct | _reached(imports, direct) if direct else direct


def _package(module: str) -> str:
    root, _, rest = module.partition(".")
    return rest.partition(".")[0] if root == ROOTS[0] else root


def _short(package: str) -> str:
    return package.rpartition(".")[2]
