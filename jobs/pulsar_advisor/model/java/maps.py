"""The iteration order of Java's hash maps, which decides every tie in Pulsar's strategies.

Source: `java.util.HashMap` and `java.util.concurrent.ConcurrentHashMap` (JDK 17 to 21), insert only. Not modelled:
chains of eight or more entries, which Java converts to trees; at its load factor of 0.75 they don't occur unless names
were chosen to collide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from pulsar_advisor.model.java.stable_order import Permutation, stable_order

Hashes = npt.NDArray[np.uint32]
Sizes = npt.NDArray[np.int64]

INITIAL_BUCKETS: Final = 16
LOAD_FACTOR: Final = 0.75
_EXACT_SINCE: Final = 19
_REMEMBERED: Final = 8
_LAST_OF_FIRST_PLANE: Final = 0xFFFF
"""Characters above it take two UTF-16 units in Java."""


def string_hash(text: str) -> int:
    """`String.hashCode()` as an unsigned 32-bit number: Horner's rule with 31 over the UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + 256 * high + low) & 0xFFFFFFFF
    return value


def string_hashes(texts: Sequence[str]) -> Hashes:
    """`string_hash` of every text; texts of equal length are processed together, one character position at a time."""
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    hashes = np.zeros(len(texts), dtype=np.uint32)
    for length in np.unique(lengths[lengths > 0]).tolist():
        rows = np.flatnonzero(lengths == length)
        characters = np.array([texts[row] for row in rows.tolist()], dtype=f"<U{length}").view(np.uint32)
        characters = characters.reshape(len(rows), length)
        value = np.zeros(len(rows), dtype=np.uint32)
        for column in range(length):
            value = value * np.uint32(31) + characters[:, column]
        hashes[rows] = value
        for row in rows[(characters > _LAST_OF_FIRST_PLANE).any(axis=1)].tolist():
            hashes[row] = string_hash(texts[row])
    return hashes


@lru_cache(maxsize=_REMEMBERED)
def name_hashes(names: tuple[str, ...]) -> Hashes:
    """`string_hashes` of a cluster's names, cached because a simulation asks for them in every cycle; read-only."""
    hashes = string_hashes(names)
    hashes.flags.writeable = False
    return hashes


def bundle_name_hashes(namespace_hashes: Hashes, lower: npt.NDArray[np.int64], upper: npt.NDArray[np.int64]) -> Hashes:
    """`string_hash` of `<namespace>/0x%08x_0x%08x` for each row, without building the texts.

    `namespace_hashes` holds the hash of each row's namespace name.
    """
    digits, shift = _hashes_of_four_digits(), np.uint32(31**4)
    value = namespace_hashes
    for separator, bound in (("/0x", lower), ("_0x", upper)):
        for character in separator:
            value = value * np.uint32(31) + np.uint32(ord(character))
        value = value * shift + digits[bound >> 16]
        value = value * shift + digits[bound & 0xFFFF]
    return value


@cache
def _hashes_of_four_digits() -> Hashes:
    """`string_hash` of every 16-bit number in four hexadecimal digits."""
    number = np.arange(1 << 16, dtype=np.uint32)
    value = np.zeros(1 << 16, dtype=np.uint32)
    for shift in (12, 8, 4, 0):
        digit = (number >> np.uint32(shift)) & np.uint32(0xF)
        value = value * np.uint32(31) + digit + np.where(digit < 10, np.uint32(ord("0")), np.uint32(ord("a") - 10))
    return value


def hash_map_buckets(size: int, buckets: int = INITIAL_BUCKETS) -> int:
    """How many buckets a `HashMap` that started with `buckets` has after holding `size` entries; it never shrinks."""
    while size > buckets - buckets // 4:
        buckets *= 2
    return buckets


def hash_map_order(hashes: Hashes, initial_buckets: int = INITIAL_BUCKETS) -> Permutation:
    """Positions of the keys in the iteration order of a `HashMap` into which they were put one after the other."""
    buckets = hash_map_buckets(len(hashes), initial_buckets)
    return stable_order(_spread(hashes) & np.uint32(buckets - 1))


def concurrent_map_order(hashes: Hashes) -> Permutation:
    """Positions of the keys in the iteration order of a `ConcurrentHashMap` into which they were put in sequence.

    Unlike `HashMap`, it reverses part of a chain whenever it doubles, so the order depends on every earlier doubling.
    """
    spread = _spread(hashes) & np.uint32(0x7FFFFFFF)
    order: Permutation = np.empty(0, dtype=np.intp)
    buckets, inserted = INITIAL_BUCKETS, 0
    while inserted < len(hashes):
        doubles_at = buckets - buckets // 4
        until = min(len(hashes), doubles_at)
        order = np.concatenate((order, np.arange(inserted, until, dtype=np.intp)))
        order = order[stable_order(spread[order] & np.uint32(buckets - 1))]
        inserted = until
        if inserted == doubles_at:
            order = _split_chains(order, spread, buckets)
            buckets *= 2
    return order


def copied_map_buckets(sizes: Sizes, java: int) -> Sizes:
    """Buckets of `HashMap`s that were made from maps of these sizes, on this version of Java.

    Before Java 19 a copy can have more than one `put` after another would make: 32 for 12 entries.
    """
    wanted = np.ceil(sizes / LOAD_FACTOR) if java >= _EXACT_SINCE else np.trunc(sizes / LOAD_FACTOR + 1)
    return np.exp2(np.ceil(np.log2(np.maximum(wanted, 1)))).astype(np.int64)


def copied_set_buckets(sizes: Sizes, java: int) -> Sizes:
    """Buckets of `HashSet`s that were made from collections of these sizes, on this version of Java."""
    return np.maximum(INITIAL_BUCKETS, copied_map_buckets(sizes, java))


def hash_map_orders(hashes: Hashes, maps: Sizes, buckets: Sizes) -> Permutation:
    """Positions of the keys of many `HashMap`s, map by map, in iteration order.

    `maps` is each key's map, by number, and `buckets` is per map. Keys of one map are put in the order given.
    """
    return np.lexsort((_spread(hashes) & (buckets[maps] - 1).astype(np.uint32), maps))


def _spread(hashes: Hashes) -> Hashes:
    """Java mixes the upper half into the lower one, which alone selects the bucket of a small table."""
    return hashes ^ (hashes >> np.uint32(16))


def _split_chains(order: Permutation, spread: Hashes, buckets: int) -> Permutation:
    """The iteration order after the table has doubled from `buckets`.

    The last run of entries in each chain that go the same way moves unchanged; every entry before it is prepended.
    """
    bucket = spread[order] & np.uint32(buckets - 1)
    goes_up = (spread[order] & np.uint32(buckets)) != 0
    same_chain = np.append(bucket[:-1] == bucket[1:], False)
    turns = same_chain & np.append(goes_up[:-1] != goes_up[1:], False)
    turns_so_far = np.cumsum(turns)
    chain_end = np.flatnonzero(~same_chain)[np.cumsum(~same_chain) - ~same_chain]
    in_last_run = turns_so_far[chain_end] == turns_so_far - turns
    ahead = np.flatnonzero(~in_last_run)
    order = np.concatenate((order[ahead[::-1]], order[in_last_run]))
    return order[stable_order(spread[order] & np.uint32(2 * buckets - 1))]
