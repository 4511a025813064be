"""The first entry of a `TreeMap` whose comparison is not transitive, which depends on the shape of the tree.

Source: `java.util.TreeMap.put` (JDK 17): a red-black tree that compares a new key only with those on its way down.
"""

from __future__ import annotations

from collections.abc import Callable

_NO_KEY = -1


class _Tree:
    """Keys are numbered in the order of arrival; the lists of links and colours are indexed by that number."""

    def __init__(self) -> None:
        self.root = _NO_KEY
        self.links: tuple[list[int], list[int]] = ([], [])
        """Left and right child of each key."""
        self.parent: list[int] = []
        self.red: list[bool] = []

    def put(self, before: Callable[[int, int], bool]) -> None:
        key, parent, side = len(self.parent), _NO_KEY, 0
        below = self.root
        while below != _NO_KEY:
            parent, side = below, 0 if before(key, below) else 1
            below = self.links[side][parent]
        for links in self.links:
            links.append(_NO_KEY)
        self.parent.append(parent)
        self.red.append(True)
        if parent == _NO_KEY:
            self.root = key
        else:
            self.links[side][parent] = key
        self._rebalance(key)

    def _rebalance(self, key: int) -> None:
        while key != self.root and self.red[parent := self.parent[key]]:
            # The root is black, so a red parent has a parent.
            above = self.parent[parent]
            side = 0 if self.links[0][above] == parent else 1
            uncle = self.links[1 - side][above]
            if uncle != _NO_KEY and self.red[uncle]:
                self.red[parent] = self.red[uncle] = False
                self.red[above] = True
                key = above
                continue
            if self.links[1 - side][parent] == key:
                key = parent
                self._rotate(key, side)
            self.red[self.parent[key]] = False
            self.red[above] = True
            self._rotate(above, 1 - side)
        self.red[self.root] = False

    def _rotate(self, key: int, side: int) -> None:
        """Move a key down to this side; its child on the other side takes its place."""
        inner, outer = self.links[side], self.links[1 - side]
        child, parent = outer[key], self.parent[key]
        outer[key] = inner[child]
        if inner[child] != _NO_KEY:
            self.parent[inner[child]] = key
        self.parent[child] = parent
        if parent == _NO_KEY:
            self.root = child
        else:
            self.links[0 if self.links[0][parent] == key else 1][parent] = child
        inner[child] = key
        self.parent[key] = child


def first_in_tree(number: int, before: Callable[[int, int], bool]) -> int:
    """Which of the keys 0 to `number` - 1, put in this order, comes first; `before` compares a new with an old one."""
    tree = _Tree()
    for _ in range(number):
        tree.put(before)
    first = tree.root
    while tree.links[0][first] != _NO_KEY:
        first = tree.links[0][first]
    return first
