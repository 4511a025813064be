"""Which bundle and broker each series is of, by its labels."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import numpy as np

from pulsar_advisor.admin.prometheus import Samples
from pulsar_advisor.history.exported import BUNDLES, NAMESPACES, Level, broker_of
from pulsar_advisor.history.ring import Ring, namespace_of
from pulsar_advisor.history.scraped import Exporter, Floats
from pulsar_advisor.model.errors import DataNotFit


class Exporters:
    """Where the series of one level belong in a ring."""

    def __init__(self, broker_ids: Collection[str], level: Level, ring: Ring) -> None:
        self._level = level
        self._ring = ring
        self._numbers = {name: number for number, name in enumerate(ring.names)}
        self._broker = lru_cache(maxsize=None)(lambda instance: broker_of(instance, broker_ids))

    def __call__(self, samples: Samples) -> tuple[list[Exporter], Floats]:
        """Where series belong, with their samples. Their labels are instance, namespace, and what they are of.

        Those of a namespace count in equal shares for each of its bundles; if it has several, nothing says who owns
        which. Raises `DataNotFit` for series that weren't asked for.
        """
        if not samples.labels:
            return [], samples.figures
        exporters: list[Exporter] = []
        places: list[int] = []
        shares: list[float] = []
        for place, (instance, namespace, subject) in enumerate(samples.labels):
            broker = self._broker(instance)
            if self._level is BUNDLES:
                namespace = namespace_of(subject)
            if namespace not in self._ring or (self._level is BUNDLES and subject not in self._numbers):
                raise DataNotFit(f"the server answers with {subject[:200]!r} of {namespace[:200]!r}, not asked for")
            if self._level is NAMESPACES:
                bundles = self._ring.bundles_of(namespace)
                owner, of = ("", broker) if len(bundles) > 1 else (broker, namespace)
                exporters += [Exporter(bundle, owner, of) for bundle in bundles]
                places += [place] * len(bundles)
                shares += [1 / len(bundles)] * len(bundles)
            else:
                number = self._numbers[subject] if self._level is BUNDLES else self._ring.bundle_of(namespace, subject)
                exporters.append(Exporter(number, broker, subject))
                places.append(place)
                shares.append(1)
        return exporters, samples.figures[places] * np.array(shares)[:, None]
