"""Java's map order, held against a step-by-step model of the two maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.bundle_range import format_range
from pulsar_advisor.model.java.maps import (
    bundle_name_hashes,
    concurrent_map_order,
    copied_map_buckets,
    copied_set_buckets,
    hash_map_buckets,
    hash_map_order,
    hash_map_orders,
    string_hash,
    string_hashes,
)

NAMES = st.lists(st.text("abcdefghijk/0123456789:-", min_size=1, max_size=12), unique=True, max_size=300)


def test_the_hash_of_a_string() -> None:
    assert string_hash("") == 0
    assert string_hash("hello") == 99162322
    assert string_hash("Aa") == string_hash("BB")


def test_characters_beyond_the_first_plane_count_as_two() -> None:
    assert string_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


@given(st.text("abc-", min_size=1, max_size=8), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_bundle_names_hash_needs_no_text(namespace: str, lower: int, upper: int) -> None:
    hashes = bundle_name_hashes(string_hashes([namespace]), np.array([lower]), np.array([upper]))
    assert hashes.tolist() == [string_hash(f"{namespace}/{format_range(lower, upper)}")]


@given(st.lists(st.text(max_size=6)))
def test_many_hashes_are_those_of_each(texts: list[str]) -> None:
    assert string_hashes(texts).tolist() == [string_hash(text) for text in texts]


@given(NAMES)
def test_a_hash_map_is_walked_as_java_does(names: list[str]) -> None:
    assert [names[place] for place in hash_map_order(string_hashes(names))] == _hash_map(names)


@given(NAMES)
def test_a_concurrent_hash_map_is_walked_as_java_does(names: list[str]) -> None:
    assert [names[place] for place in concurrent_map_order(string_hashes(names))] == _concurrent_hash_map(names)


@pytest.mark.parametrize("size", [0, 1, 11, 12, 13, 24, 25])
def test_sizes_around_a_doubling(size: int) -> None:
    names = [f"bundle-{number}" for number in range(size)]
    assert [names[place] for place in concurrent_map_order(string_hashes(names))] == _concurrent_hash_map(names)


def _spread(name: str) -> int:
    return string_hash(name) ^ (string_hash(name) >> 16)


def _hash_map(names: Sequence[str]) -> list[str]:
    buckets = 16
    chains: list[list[str]] = [[] for _ in range(buckets)]
    for size, name in enumerate(names, start=1):
        chains[_spread(name) & (buckets - 1)].append(name)
        if size > buckets * 3 // 4:
            buckets *= 2
            entries = [entry for chain in chains for entry in chain]
            chains = [[] for _ in range(buckets)]
            for entry in entries:
                chains[_spread(entry) & (buckets - 1)].append(entry)
    return [entry for chain in chains for entry in chain]


def _concurrent_hash_map(names: Sequence[str]) -> list[str]:
    buckets = 16
    chains: list[list[str]] = [[] for _ in range(buckets)]
    for size, name in enumerate(names, start=1):
        chains[_spread(name) & (buckets - 1)].append(name)
        while size >= buckets - buckets // 4:
            doubled: list[list[str]] = [[] for _ in range(2 * buckets)]
            for index, chain in enumerate(chains):
                doubled[index], doubled[index + buckets] = _split(chain, buckets)
            chains, buckets = doubled, 2 * buckets
    return [entry for chain in chains for entry in chain]


def _split(chain: list[str], bit: int) -> tuple[list[str], list[str]]:
    last_run = len(chain)
    while last_run > 0 and (_spread(chain[last_run - 1]) & bit) == (_spread(chain[-1]) & bit):
        last_run -= 1
    sides: tuple[list[str], list[str]] = [], []
    for entry in chain[last_run:]:
        sides[bool(_spread(entry) & bit)].append(entry)
    for entry in chain[:last_run]:
        sides[bool(_spread(entry) & bit)].insert(0, entry)
    return sides


def test_a_copy_of_a_map_can_have_more_buckets_than_the_same_puts_make() -> None:
    sizes = np.array([1, 3, 5, 6, 11, 12, 24])
    assert copied_map_buckets(sizes, 17).tolist() == [2, 8, 8, 16, 16, 32, 64]
    assert copied_set_buckets(sizes, 17).tolist() == [16, 16, 16, 16, 16, 32, 64]
    assert copied_map_buckets(sizes, 21).tolist() == [2, 4, 8, 8, 16, 16, 32]
    assert copied_set_buckets(sizes, 21).tolist() == [16, 16, 16, 16, 16, 16, 32]
    assert [hash_map_buckets(size) for size in sizes.tolist()] == [16, 16, 16, 16, 16, 16, 32]


@given(NAMES, st.integers(1, 5))
def test_many_maps_are_ordered_at_once(names: list[str], number: int) -> None:
    hashes, maps = string_hashes(names), np.arange(len(names)) % number
    buckets = np.array([hash_map_buckets(int(np.count_nonzero(maps == one))) for one in range(number)])
    in_order = [
        position
        for one in range(number)
        for position in np.flatnonzero(maps == one)[hash_map_order(hashes[maps == one])].tolist()
    ]
    assert hash_map_orders(hashes, maps, buckets).tolist() == in_order
