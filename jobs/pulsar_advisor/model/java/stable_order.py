"""Sorting positions by small keys: the order of a stable sort, several times faster than numpy's stable `argsort`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Permutation = npt.NDArray[np.intp]


def stable_order(key: npt.NDArray[np.integer], *less_significant: npt.NDArray[np.integer]) -> Permutation:
    """Positions in ascending order of the keys, equal ones in their own order. Keys and positions are below 2³²."""
    order: Permutation = np.arange(len(key))
    for one in (*reversed(less_significant), key):
        order = order[_places(one[order])]
    return order


def _places(key: npt.NDArray[np.integer]) -> Permutation:
    """Key and position are sorted as one number."""
    numbered = (key.astype(np.uint64) << np.uint64(32)) | np.arange(len(key), dtype=np.uint64)
    numbered.sort()
    return (numbered & np.uint64(0xFFFFFFFF)).astype(np.intp)
