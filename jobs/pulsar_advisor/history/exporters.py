"""The bundle and broker of each series, from its labels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from pulsar_advisor.history.exported import BUNDLES, NAMESPACES, TOPICS, Level, broker_of, topic_of
from pulsar_advisor.history.ring import Ring, namespace_of
from pulsar_advisor.history.scraped import Exporter, Places
from pulsar_advisor.model.errors import DataNotFit


class Exporters:
    """Assigns the series of one level to the bundles of a ring."""

    def __init__(self, broker_ids: Collection[str], level: Level, ring: Ring) -> None:
        self._level = level
        self._ring = ring
        self._numbers = {name: number for number, name in enumerate(ring.names)}
        self._last: tuple[Sequence[tuple[str, ...]], Places] | None = None
        self._broker = lru_cache(maxsize=None)(lambda instance: broker_of(instance, broker_ids))

    def places(self, labels: Sequence[tuple[str, ...]]) -> Places:
        """Where series belong, by their labels: instance, namespace, subject, and partition.

        Series of a namespace count in equal shares for each of its bundles; if there are several, their owners are
        unknown. Raises `DataNotFit` for series that weren't asked for.
        """
        if self._last is not None and self._last[0] == labels:  # as with each figure of the same topics
            return self._last[1]
        exporters: list[Exporter] = []
        series: list[int] = []
        shares: list[float] = []
        for number, (instance, namespace, subject, partition) in enumerate(labels):
            broker = self._broker(instance)
            if self._level is TOPICS:
                subject = topic_of(subject, partition)
            if self._level is BUNDLES:
                namespace = namespace_of(subject)
            if namespace not in self._ring or (self._level is BUNDLES and subject not in self._numbers):
                raise DataNotFit(f"the server returned {subject[:200]!r} of {namespace[:200]!r}, not requested")
            if self._level is NAMESPACES:
                bundles = self._ring.bundles_of(namespace)
                owner, of = ("", broker) if len(bundles) > 1 else (broker, namespace)
                exporters += [Exporter(bundle, owner, of) for bundle in bundles]
                series += [number] * len(bundles)
                shares += [1 / len(bundles)] * len(bundles)
            else:
                bundle = self._numbers[subject] if self._level is BUNDLES else self._ring.bundle_of(namespace, subject)
                exporters.append(Exporter(bundle, broker, subject))
                series.append(number)
                shares.append(1)
        found = Places(exporters, series, shares)
        self._last = (labels, found)
        return found
