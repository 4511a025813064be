"""From the series that brokers export to the load of their bundles: who owned each, and its traffic, moment by moment.

A bundle's owner exports all its topics, and no one else does but for a moment around a move: the broker that exports
most of them is the owner, and only its figures count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pulsar_advisor.history.columns import LOAD, MOVED, TRAFFIC

FIGURES: Final = (*TRAFFIC, "producers", "consumers")
"""Of a bundle, in the order of the figures in this module."""
SCRAPED: Final = pa.schema(
    [
        *(LOAD.field(name) for name in ("bundle", "t", "flags")),
        pa.field("owner", pa.string()),
        *(pa.field(name, pa.float32()) for name in FIGURES),
    ]
)
"""Load with its owners by id (null: none, or not known) and its connections by kind."""

Floats = npt.NDArray[np.float64]


class Exporter(NamedTuple):
    """Where a series belongs: the bundle that it is of, and the broker that exported it."""

    bundle: int
    broker: str
    """Its id; empty: not known, the figures are a part of the bundle's all the same."""
    subject: str
    """What it is of, a topic; two series of the same bundle, broker and subject are one that was scraped twice."""


class Scraped:
    """What was exported about some bundles over the moments of a window."""

    def __init__(self, moments: int) -> None:
        self._moments = moments
        self._of: dict[int, dict[str, Floats]] = {}
        """Bundle -> broker -> (figures and the count of series, moments)."""

    def add(self, figure: int, first: int, exporters: Sequence[Exporter], samples: Floats) -> None:
        """Series (each at its place in `exporters`) of one of `FIGURES`, from the moment `first` on; NaN: no sample."""
        if not exporters:
            return
        order = sorted(range(len(exporters)), key=exporters.__getitem__)
        ordered = [exporters[place] for place in order]
        once = _first_of_each(ordered)
        series = np.fmax.reduceat(samples[order], once)
        keys = [ordered[place][:2] for place in once]
        together = _first_of_each(keys)
        there = np.isfinite(series)
        counts = np.add.reduceat(there, together, dtype=np.float64)
        sums = np.add.reduceat(np.where(there, series, 0.0), together)
        last = first + samples.shape[1]
        for place, count, total in zip(together, counts, sums, strict=True):
            kept = self._figures(*keys[place])
            before = kept[figure, first:last]
            kept[figure, first:last] = np.where(count > 0, np.nan_to_num(before) + total, before)
            np.maximum(kept[-1, first:last], count, out=kept[-1, first:last])

    def _figures(self, bundle: int, broker: str) -> Floats:
        of_bundle = self._of.setdefault(bundle, {})
        if broker not in of_bundle:
            of_bundle[broker] = np.full((len(FIGURES) + 1, self._moments), np.nan)
            of_bundle[broker][-1] = 0
        return of_bundle[broker]

    def load(self, bundles: Iterable[int]) -> pa.Table:
        """The rows of `SCRAPED` of these bundles, every moment of each."""
        numbers = np.fromiter(bundles, np.int32)
        figures = np.full((len(numbers), len(FIGURES), self._moments), np.nan)
        owners = np.full((len(numbers), self._moments), None, object)
        flags = np.zeros((len(numbers), self._moments), np.uint8)
        for place, bundle in enumerate(numbers.tolist()):
            if (of_bundle := self._of.get(bundle)) is not None:
                figures[place], owners[place], flags[place] = _owned(of_bundle)
        columns: dict[str, npt.NDArray[Any]] = {
            "bundle": np.repeat(numbers, self._moments),
            "t": np.tile(np.arange(self._moments, dtype=np.uint16), len(numbers)),
            "owner": owners.ravel(),
            "flags": flags.ravel(),
            **{name: figures[:, place].ravel() for place, name in enumerate(FIGURES)},
        }
        return pa.table([pa.array(columns[name]) for name in SCRAPED.names], SCRAPED.names).cast(SCRAPED, safe=False)


def _first_of_each(ordered: Sequence[tuple[Any, ...]]) -> list[int]:
    """Where each new thing begins among things in order."""
    return [place for place, one in enumerate(ordered) if not place or one != ordered[place - 1]]


def _owned(brokers: dict[str, Floats]) -> tuple[Floats, npt.NDArray[np.object_], npt.NDArray[np.uint8]]:
    """A bundle's figures, owner and flags at each moment.

    Of two brokers that export as many of its topics, the owner is the one that does so at the next moment: the series
    of the other are the last that a scrape found.
    """
    ids = sorted(brokers)
    of = np.stack([brokers[broker] for broker in ids])
    count = of[:, -1]
    next_count = np.concatenate([count[:, 1:], count[:, -1:]], axis=1)
    first = np.broadcast_to(-np.arange(len(ids))[:, None], count.shape)
    chosen = np.lexsort((first, next_count, count), axis=0)[-1]
    figures = np.take_along_axis(of[:, :-1], chosen[None, None, :], axis=0)[0]
    exported = (count > 0).sum(axis=0)
    names = np.array([id or None for id in ids], object)
    owner = np.where(exported > 0, names[chosen], np.array(None, object))
    return figures, owner, np.where(exported > 1, MOVED, 0).astype(np.uint8)
