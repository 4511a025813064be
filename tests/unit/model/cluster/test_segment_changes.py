"""Two snapshots across splits and merges of segments: keys are neither lost nor counted twice, nor is load."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.bundle_range import topic_hash
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.cluster.segment_changes import segment_changes
from scalable_topics import FIRST, LAST, Segment, merged, scalable_topic, split
from states import HALVES, BrokerRow, BundleRow, cluster_state

CLICKS = "topic://t/n/clicks"


def state_of(segments: list[Segment], ranges: tuple[str, ...] = HALVES) -> ClusterState:
    names = [one.name for one in segments if one.state == "ACTIVE"]
    return cluster_state(
        [BrokerRow("b:8080")], [BundleRow("t/n", text, "b:8080", topics=1) for text in ranges], topics=names
    )


def bundle_of(segment: Segment) -> str:
    return f"t/n/{HALVES[topic_hash(segment.name) >> 31]}"


def test_a_split_and_a_merge_name_the_bundles_that_gave_and_got_the_load() -> None:
    one = [Segment(CLICKS, 0, FIRST, LAST)]
    two = split(one, one[0])
    [change] = segment_changes(state_of(one), state_of(two))
    assert change.before == {one[0].name: bundle_of(one[0])}
    assert change.after == {segment.name: bundle_of(segment) for segment in two[1:]}
    assert "1 of its segments became 2 others, so load went from" in change.sentence
    [change] = segment_changes(state_of(two), state_of(merged(two, two[1], two[2])))
    assert (len(change.before), len(change.after)) == (2, 1)


def test_a_segment_with_other_entry_buckets_has_another_name_and_so_another_bundle() -> None:
    before, after = Segment(CLICKS, 0, FIRST, LAST), Segment(CLICKS, 1, FIRST, LAST, parents=(0,))
    [change] = segment_changes(state_of([before]), state_of([after]))
    assert change.sentence.startswith(f"{CLICKS}: 1 of its segments became 1 other, so load went from")


def test_what_stayed_is_no_change_nor_is_a_topic_that_is_new() -> None:
    one = [Segment(CLICKS, 0, FIRST, LAST)]
    assert segment_changes(state_of(one), state_of(one)) == ()
    assert segment_changes(state_of([]), state_of(one)) == ()


def test_a_topic_that_became_scalable_keeps_its_first_segment_until_that_is_split() -> None:
    one = [Segment(CLICKS, 0, FIRST, LAST)]
    quarters = split(split(one, one[0]), split(one, one[0])[1])
    [left] = segment_changes(state_of(split(one, one[0])), state_of(quarters))
    assert {name.rpartition("/")[2] for name in left.before} == {"0000-7fff-1"}
    assert {name.rpartition("/")[2] for name in left.after} == {"0000-3fff-3", "4000-7fff-4"}


@given(seed=st.integers(0, 2**32), earlier=st.integers(0, 40), later=st.integers(0, 40))
def test_keys_pass_from_segments_to_their_descendants_and_none_is_lost(seed: int, earlier: int, later: int) -> None:
    before = scalable_topic(CLICKS, earlier, random.Random(seed))
    after = scalable_topic(CLICKS, earlier + later, random.Random(seed))
    by_name = {one.name: one for one in after}
    then, now = ({one.name for one in of if one.state == "ACTIVE"} for of in (before, after))
    changes = segment_changes(state_of(before), state_of(after))
    assert Counter(name for one in changes for name in one.before) == Counter(then - now)
    assert Counter(name for one in changes for name in one.after) == Counter(now - then)
    for change in changes:
        gone, come = ([by_name[name] for name in of] for of in (change.before, change.after))
        assert keys(gone) == keys(come)
        assert all(lineage(one, after) & {each.id for each in gone} for one in come)


def keys(segments: list[Segment]) -> set[int]:
    found = [key for one in segments for key in range(one.start, one.end + 1)]
    assert len(found) == len(set(found))
    return set(found)


def lineage(segment: Segment, of: list[Segment]) -> set[int]:
    """Its id and those of all its ancestors."""
    known, level = set[int](), {segment.id}
    while level:
        known |= level
        level = {parent for id_ in level for parent in of[id_].parents} - known
    return known


@given(seed=st.integers(0, 2**32), changes=st.integers(0, 60))
def test_each_segment_counts_in_exactly_one_bundle(seed: int, changes: int) -> None:
    chance = random.Random(seed)
    segments = scalable_topic(CLICKS, changes, chance)
    edges = [0, *sorted(chance.sample(range(1, 2**32 - 1), 8)), 2**32 - 1]
    ranges = tuple(f"0x{lower:08x}_0x{upper:08x}" for lower, upper in pairwise(edges))
    state = state_of(segments, ranges)
    counted = Counter(state.bundle_name(int(bundle)).rpartition("/")[2] for bundle in state.topics.bundle.tolist())
    for text, (lower, upper) in zip(ranges, pairwise(edges), strict=True):
        held = [one for one in segments if one.state == "ACTIVE" and lower <= topic_hash(one.name) < upper]
        assert counted[text] == len(held)
