"""Finds a topic's bundle by the boundaries of one snapshot."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from pulsar_advisor.model.cluster.bundle_range import FULL_UPPER_BOUND, format_range, parse_range, topic_hash


class Ring:
    """The bundles of some namespaces, numbered in the order of their names. A namespace without known boundaries is
    one bundle."""

    def __init__(self, bundles: Iterable[str], namespaces: Iterable[str]) -> None:
        """`bundles`: `tenant/namespace/0x…_0x…`, all of a namespace or none; `namespaces` are included in any case."""
        known = set(bundles)
        bounded = {namespace_of(bundle) for bundle in known}
        self.unbounded = tuple(sorted(set(namespaces) - bounded))
        """The namespaces without known boundaries."""
        whole = format_range(0, FULL_UPPER_BOUND)
        self.names = tuple(sorted(known | {f"{namespace}/{whole}" for namespace in self.unbounded}))
        self._lowest: dict[str, tuple[int, list[int]]] = {}
        for number, name in enumerate(self.names):
            lower, _ = parse_range(name.rpartition("/")[2])
            self._lowest.setdefault(namespace_of(name), (number, []))[1].append(lower)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._lowest

    def bundle_of(self, namespace: str, topic: str) -> int:
        """The number of a topic's bundle, by the topic's complete name; its namespace must be in the ring."""
        first, lowest = self._lowest[namespace]
        return first + max(bisect_right(lowest, topic_hash(topic)) - 1, 0)

    def bundles_of(self, namespace: str) -> range:
        """The numbers of a namespace's bundles."""
        first, lowest = self._lowest[namespace]
        return range(first, first + len(lowest))


def namespace_of(bundle: str) -> str:
    """`tenant/namespace` of `tenant/namespace/0x…_0x…`."""
    return bundle.rpartition("/")[0]
