"""Shrinks a failing test case: takes away and simplifies what the failure doesn't need."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

Case = dict[str, Any]
Path = tuple[str | int, ...]

UNTOUCHED = frozenset({"id", "strategy", "algorithm or task", "expected"})
MOST_ATTEMPTS = 4000


def smallest(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A case that still fails and from which no single part can be taken without the failure going away.

    A part is an entry of an object or a list, or a figure that could be 0, 1 or a rounder number. Stops after
    `MOST_ATTEMPTS` attempts with what it has. A smaller case that can't be run counts as not failing.
    """
    left = MOST_ATTEMPTS

    def still_fails(smaller: Case) -> bool:
        nonlocal left
        left -= 1
        try:
            return left >= 0 and fails(smaller)
        except (KeyError, ValueError, TypeError, IndexError, AttributeError, AssertionError):
            return False

    before = None
    while case != before and left > 0:
        before = case
        for path in [(), *_containers(case, ())]:
            case = _fewer_entries(case, path, still_fails)
        case = _simpler_figures(case, still_fails)
    return case


def _fewer_entries(case: Case, path: Path, fails: Callable[[Case], bool]) -> Case:
    """The case with fewer entries in one object or list: first whole stretches of entries, then single ones."""
    container = _at(case, path)
    if container is None:
        return case
    size = max(len(container) // 2, 1)
    while size:
        position = 0
        while position < len(keys := _keys(_at(case, path))):
            smaller = copy.deepcopy(case)
            parent = _at(smaller, path)
            for key in reversed(keys[position : position + size]):
                del parent[key]
            if fails(smaller):
                case = smaller
            else:
                position += size
        size //= 2
    return case


def _simpler_figures(case: Case, fails: Callable[[Case], bool]) -> Case:
    for path in list(_figures(case, ())):
        for simpler in _simpler(_at(case, path)):
            smaller = copy.deepcopy(case)
            _at(smaller, path[:-1])[path[-1]] = simpler
            if fails(smaller):
                case = smaller
                break
    return case


def _keys(container: Any) -> list[Any]:
    if isinstance(container, dict):
        return [key for key in container if key not in UNTOUCHED]
    return list(range(len(container)))


def _entries(node: Any) -> list[tuple[Any, Any]]:
    return [(key, node[key]) for key in _keys(node)] if isinstance(node, dict | list) else []


def _containers(node: Any, path: Path) -> Iterator[Path]:
    for key, value in _entries(node):
        if isinstance(value, dict | list):
            yield (*path, key)
            yield from _containers(value, (*path, key))


def _figures(node: Any, path: Path) -> Iterator[Path]:
    for key, value in _entries(node):
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, key)
        yield from _figures(value, (*path, key))


def _at(node: Any, path: Path) -> Any:
    """The node at a path; None if it is gone."""
    for key in path:
        try:
            node = node[key]
        except (KeyError, IndexError, TypeError):
            return None
    return node


def _simpler(value: float) -> Iterator[float]:
    rounder = float(f"{value:.1g}")
    for simpler in (0, 1, 10, 100, *([rounder] if math.isfinite(rounder) else [])):
        if simpler != value and len(repr(simpler)) < len(repr(value)):
            yield simpler
