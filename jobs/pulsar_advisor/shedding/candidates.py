"""What the Modular shedders share: which bundles of a broker may leave, in which order, and the greedy take.

Source: the code common to `OverloadShedder`, `ThresholdShedder`, `UniformLoadShedder` and `AvgShedder` (2.11.0 to
5.0.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.cluster.cluster_state import Booleans, Floats, Indices, Integers
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.java.maps import hash_map_order
from pulsar_advisor.model.java.numbers import total_order
from pulsar_advisor.model.load.load_data import Exclusion, LoadData, Memberships
from pulsar_advisor.model.strategy.outcomes import Codes, Outcome, Outcomes, no, vocabulary, yes

_MULTIMAP_BUCKETS: Final = 16
_MULTIMAP_BUCKETS_UP_TO_2_11: Final = 32
_SMALLER_MULTIMAP: Final = (3, 0, 0)
"""Initial sizes of the map from source broker to bundles (Guava's `ArrayListMultimap`; version 32 came with 3.0)."""


@dataclass(frozen=True, eq=False)
class RankedBundles:
    """Bundles that may be moved off some brokers, per broker in the order they are considered."""

    sources: Indices
    """Broker rows."""
    starts: Integers
    """(sources + 1,): those of `sources[i]` are at `starts[i]:starts[i + 1]`."""
    bundle: Indices
    value: Floats
    """The values they are ranked by, in their unit."""

    def source_position(self) -> Integers:
        """Position in `sources`, parallel to the bundles."""
        return np.repeat(np.arange(len(self.sources)), np.diff(self.starts))


def rank(
    load: LoadData, sources: Indices, value: Floats, dimension: npt.NDArray[np.int64] | None = None
) -> RankedBundles:
    """Bundles that may leave `sources` (broker rows), greatest `value` (per bundle row) first; ties in map order.

    With `dimension` (per source), `value` has one row per dimension, and each source's bundles are ranked by its own.
    """
    starts, places = _slices(load.candidates, sources)
    bundle = load.candidates.bundle[places]
    own = value[bundle] if dimension is None else value[np.repeat(dimension, np.diff(starts)), bundle]
    ranked = RankedBundles(sources, starts, bundle, own)
    descending = np.argsort(~total_order(ranked.value), kind="stable")
    position = ranked.source_position()
    by_source = position[descending]
    if len(sources) <= np.iinfo(np.int16).max:
        by_source = by_source.astype(np.int16)
    order = descending[np.argsort(by_source, kind="stable")]
    return RankedBundles(sources, starts, bundle[order], ranked.value[order])


@dataclass(frozen=True, eq=False)
class Take:
    """What a greedy take did with each ranked bundle."""

    taken: Booleans
    taken_before: Floats
    """Sum of the values taken before the bundle: the side compared with the minimum."""


def greedy_take(ranked: RankedBundles, minimum: Floats) -> Take:
    """Take each source's bundles from the top until their values reach `minimum` (per source); the first always goes.

    The last one may overshoot. A NaN value ends the taking.
    """
    starts, lengths = ranked.starts[:-1], np.diff(ranked.starts)
    occupied = lengths > 0
    before = np.zeros(len(ranked.bundle))
    for start, length in zip(starts[lengths > 1].tolist(), lengths[lengths > 1].tolist(), strict=True):
        # Sequential within the slice, as Java adds; a difference of global sums would round differently.
        np.add.accumulate(ranked.value[start : start + length - 1], out=before[start + 1 : start + length])
    if not occupied.any():
        return Take(np.zeros(0, dtype=np.bool_), before)
    with np.errstate(invalid="ignore"):
        refused = ~(before < np.repeat(minimum, lengths))
    refused[starts[occupied]] = False
    refused_so_far = np.cumsum(refused)
    refused_at_start = np.repeat(refused_so_far[starts[occupied]], lengths[occupied])
    taken = refused_so_far == refused_at_start
    first_refused = np.repeat(
        starts[occupied] + np.add.reduceat(taken.astype(np.int64), starts[occupied]), lengths[occupied]
    )
    return Take(taken, np.where(taken, before, before[np.minimum(first_refused, len(before) - 1)]))


def in_result_order(
    load: LoadData, ranked: RankedBundles, taken: Booleans, settings: LoadBalancerSettings
) -> tuple[Indices, Indices]:
    """Source and bundle rows of the bundles taken, in the iteration order of the shedder's result map."""
    position = ranked.source_position()[taken]
    selected = np.unique(position)
    buckets = _MULTIMAP_BUCKETS if settings.behaviour >= _SMALLER_MULTIMAP else _MULTIMAP_BUCKETS_UP_TO_2_11
    order = hash_map_order(load.brokers.hashes[ranked.sources[selected]], buckets)
    place = np.zeros(len(ranked.sources), dtype=np.int64)
    place[selected[order]] = np.arange(len(selected))
    in_order = np.argsort(place[position], kind="stable")
    return ranked.sources[position][in_order], ranked.bundle[taken][in_order]


def bundle_outcomes(
    load: LoadData, ranked: RankedBundles, answers: type[Outcome], code: Codes, left: Floats, right: Floats
) -> Outcomes:
    """Outcomes of the ranked bundles, followed by those of bundles that the brokers list but no shedder may choose.

    `code` indexes `answers`; `left` and `right` are parallel to the ranked bundles.
    """
    _, excluded = _slices(load.excluded, ranked.sources)
    nothing = np.full(len(excluded), np.nan)
    return Outcomes(
        subject="bundle",
        # In the order of the questions: an excluded bundle got nowhere.
        vocabulary=vocabulary(Exclusion, answers),
        index=np.concatenate((ranked.bundle, load.excluded.bundle[excluded])),
        code=np.concatenate((code + np.uint8(len(Exclusion)), load.exclusion[excluded])),
        left=np.concatenate((left, nothing)),
        right=np.concatenate((right, nothing)),
    )


class TakeOutcome(Outcome):
    """The answers of a take by throughput about a bundle."""

    QUOTA_FILLED = no("larger ones already carry {left:,.0f} B/s of the {right:,.0f} B/s to be moved", ">=")
    CHOSEN = yes("largest remaining: {left:,.0f} B/s chosen before it, {right:,.0f} B/s to be moved", "<")
    CHOSEN_AS_FIRST = yes("largest of its broker, which sheds at least one; {right:,.0f} B/s planned", ">=")


def take_outcomes(load: LoadData, ranked: RankedBundles, take: Take, planned: Floats) -> Outcomes:
    """Outcomes of a take by throughput; `planned`: bytes/s to move off its broker, parallel to the ranked bundles."""
    taken = np.where(take.taken_before < planned, TakeOutcome.CHOSEN.value, TakeOutcome.CHOSEN_AS_FIRST.value)
    code = np.where(take.taken, taken, TakeOutcome.QUOTA_FILLED.value)
    return bundle_outcomes(load, ranked, TakeOutcome, code.astype(np.uint8), take.taken_before, planned)


def _slices(members: Memberships, brokers: Indices) -> tuple[Integers, Integers]:
    """Where each broker's bundles start, and the places of all of them in `members.bundle`, broker by broker."""
    lengths = members.offsets[brokers + 1] - members.offsets[brokers]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return starts, np.arange(starts[-1]) + np.repeat(members.offsets[brokers] - starts[:-1], lengths)
