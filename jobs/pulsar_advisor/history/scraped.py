"""Turns series that brokers export into the load of their bundles: each one's owner and traffic, moment by moment.

Only a bundle's owner exports its topics, except for a moment around a move. So the broker that exports most of them is
the owner, and only its figures count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pulsar_advisor.history.columns import LOAD, MOVED, NO_BROKER, TRAFFIC
from pulsar_advisor.model.cluster.cluster_state import Floats

FIGURES: Final = (*TRAFFIC, "producers", "consumers")
"""A bundle's figures, in the order used in this module."""
SCRAPED: Final = pa.schema(
    [
        *(LOAD.field(name) for name in ("bundle", "t", "flags")),
        pa.field("owner", pa.string()),
        *(pa.field(name, pa.float32()) for name in FIGURES),
    ]
)
"""Load with owners by id (null: none, or not known) and connections by kind."""


class Exporter(NamedTuple):
    """Where a series belongs: its bundle, and the broker that exported it."""

    bundle: int
    broker: str
    """Its id; empty: not known, but the figures still count for the bundle."""
    subject: str
    """The topic of the series; two series with the same bundle, broker and subject are one that was scraped twice."""


class Places:
    """Where the series of an answer belong, in an order independent of the answer's."""

    def __init__(self, exporters: Sequence[Exporter], series: Sequence[int], shares: Sequence[float]) -> None:
        """For each exporter, the index of its series, and its share of the series' figures."""
        order = sorted(range(len(exporters)), key=exporters.__getitem__)
        ordered = [exporters[place] for place in order]
        self._series = np.array([series[place] for place in order], np.int64)
        self._shares = np.array([shares[place] for place in order])[:, None]
        self._once = _first_of_each(ordered)
        keys = [ordered[place][:2] for place in self._once]
        self._together = _first_of_each(keys)
        self.keys = [keys[place] for place in self._together]
        """The bundles with their brokers, each once, in order."""

    def sums(self, samples: Floats) -> tuple[Floats, Floats]:
        """For each of `keys` at each moment, the sum of its series' samples, and their number."""
        series = np.fmax.reduceat(samples[self._series] * self._shares, self._once)
        there = np.isfinite(series)
        counts = np.add.reduceat(there, self._together, dtype=np.float64)
        return np.add.reduceat(np.where(there, series, 0.0), self._together), counts


class Scraped:
    """What was exported about some bundles over the moments of a window."""

    def __init__(self, moments: int) -> None:
        self._moments = moments
        self._rows: dict[tuple[int, str], int] = {}
        """A bundle and a broker -> its row of `_figures`."""
        self._figures = np.empty((0, len(FIGURES) + 1, moments))
        """The figures, and the count of series."""

    def add(self, figure: int, first: int, places: Places, samples: Floats) -> None:
        """Add all series of one of `FIGURES`, from the moment `first` on; NaN: no sample."""
        if not places.keys:
            return
        sums, counts = places.sums(samples)
        rows, last = self._rows_of(places.keys), first + samples.shape[1]
        self._figures[rows, figure, first:last] = np.where(counts > 0, sums, np.nan)
        self._figures[rows, -1, first:last] = np.maximum(self._figures[rows, -1, first:last], counts)

    def _rows_of(self, keys: Iterable[tuple[int, str]]) -> npt.NDArray[np.int64]:
        rows = np.array([self._rows.setdefault(key, len(self._rows)) for key in keys])
        if more := len(self._rows) - len(self._figures):
            new = np.full((more, len(FIGURES) + 1, self._moments), np.nan)
            new[:, -1] = 0
            self._figures = np.concatenate([self._figures, new])
        return rows

    def load(self, bundles: Iterable[int]) -> pa.Table:
        """The rows of `SCRAPED` of these bundles, every moment of each."""
        numbers = np.fromiter(bundles, np.int32)
        figures = np.full((len(numbers), len(FIGURES), self._moments), np.nan, np.float32)
        owners = np.full((len(numbers), self._moments), NO_BROKER, np.int32)
        flags = np.zeros((len(numbers), self._moments), np.uint8)
        ids = sorted({broker for _, broker in self._rows} - {""})
        number_of = {"": NO_BROKER} | {id: number for number, id in enumerate(ids)}
        exported: dict[int, list[tuple[int, int]]] = {}
        for (bundle, broker), row in sorted(self._rows.items()):
            exported.setdefault(bundle, []).append((row, number_of[broker]))
        places = {bundle: place for place, bundle in enumerate(numbers.tolist())}
        alone = [(places[bundle], *of[0]) for bundle, of in exported.items() if len(of) == 1]
        if alone:
            place, row, broker = np.array(alone).T
            figures[place] = self._figures[row, :-1]
            owners[place] = np.where(self._figures[row, -1] > 0, broker[:, None], NO_BROKER)
        for bundle, of in exported.items():
            if len(of) > 1:
                rows, brokers = np.array(of).T
                figures[places[bundle]], owners[places[bundle]], flags[places[bundle]] = _owned(
                    self._figures[rows], brokers
                )
        owner = owners.ravel()
        columns: dict[str, npt.NDArray[Any] | pa.Array] = {
            "bundle": np.repeat(numbers, self._moments),
            "t": np.tile(np.arange(self._moments, dtype=np.uint16), len(numbers)),
            "flags": flags.ravel(),
            "owner": pa.array(ids, pa.string()).take(pa.array(owner, mask=owner == NO_BROKER)),
            **{name: figures[:, place].ravel() for place, name in enumerate(FIGURES)},
        }
        return pa.table([columns[name] for name in SCRAPED.names], SCRAPED)


def _first_of_each(ordered: Sequence[tuple[Any, ...]]) -> list[int]:
    """The start of each group of equal elements in a sorted array."""
    return [place for place, one in enumerate(ordered) if not place or one != ordered[place - 1]]


def _owned(
    exported: Floats, brokers: npt.NDArray[np.int64]
) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """A bundle's figures, owner and flags at each moment, from what each of these brokers exported.

    If two brokers export equally many of its topics, the owner is the one that does so at the next moment: the other's
    series are the last that a scrape found.
    """
    count = exported[:, -1]
    next_count = np.concatenate([count[:, 1:], count[:, -1:]], axis=1)
    first = np.broadcast_to(-np.arange(len(brokers))[:, None], count.shape)
    chosen = np.lexsort((first, next_count, count), axis=0)[-1]
    figures = np.take_along_axis(exported[:, :-1], chosen[None, None, :], axis=0)[0]
    number = (count > 0).sum(axis=0)
    owner = np.where(number > 0, brokers[chosen], NO_BROKER)
    return figures, owner, np.where(number > 1, MOVED, 0).astype(np.uint8)
