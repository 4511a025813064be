"""The children of a split have the topics that hash into them, and their part of the figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.model.cluster.bundle_range import contains, topic_hash
from pulsar_advisor.model.cluster.cluster_state import NO_ROW, PublishedLoad
from pulsar_advisor.splitting.division import divided
from unit.splitting.busy_cluster import NAMES, busy, split


@given(st.lists(st.integers(1, 0x3FFFFFFF), min_size=1, max_size=4, unique=True))
def test_each_topic_is_in_the_child_that_its_hash_falls_into(boundaries: list[int]) -> None:
    before = busy()
    state = divided(before, [split(*sorted(boundaries))]).state
    bundles, topics = state.bundles, state.topics
    assert len(bundles) == len(before.bundles) + len(boundaries)
    for row, name in enumerate(topics.names):
        bundle = int(topics.bundle[row])
        assert contains(int(bundles.lower[bundle]), int(bundles.upper[bundle]), topic_hash(str(name)))
    children = slice(0, len(boundaries) + 1)
    inside = topics.bundle < len(boundaries) + 1
    assert bundles.traffic[children].sum() == pytest.approx(before.bundles.traffic[0].sum())
    assert (
        bundles.topics[children].tolist() == np.bincount(topics.bundle[inside], minlength=len(boundaries) + 1).tolist()
    )
    assert state.bundle_name(len(boundaries) + 1) == before.bundle_name(1)


@pytest.mark.parametrize(
    ("loaded", "names", "shares"),
    [(True, NAMES, "names"), (False, NAMES, "names"), (False, (), "width")],
    ids=["no topic reports traffic", "no topic is loaded", "no topic is known"],
)
def test_figures_that_no_topic_accounts_for_are_divided_too(loaded: bool, names: tuple[str, ...], shares: str) -> None:
    state = busy(names=names)
    topics = replace(state.topics, traffic=np.zeros((len(names), 4)), loaded=np.full(len(names), loaded))
    halves = divided(replace(state, topics=topics), [split(0x10000000)]).state.bundles
    position = state.topics.hash[state.topics.hash < 0x40000000]
    share = (position < 0x10000000).mean() if shares == "names" else 0.25
    assert halves.traffic[0, 0] == pytest.approx(900.0 * share)
    assert halves.traffic[:2, 0].sum() == pytest.approx(900.0)


@given(st.integers(0, 7), st.integers(0, 7))
def test_counts_are_divided_in_whole_numbers_and_conserved(producers: int, consumers: int) -> None:
    state = busy()
    state.bundles.producers[0], state.bundles.consumers[0] = producers, consumers
    children = divided(state, [split(0x10000000, 0x20000000, 0x30000000)]).state.bundles
    assert (children.producers[:4].sum(), children.consumers[:4].sum()) == (producers, consumers)


def test_a_bundle_whose_topics_are_not_known_is_divided_by_width() -> None:
    children = divided(busy(names=()), [split(0x20000000)]).state.bundles
    assert children.topics[:2].tolist() == [5, 5]
    assert children.reported[:2].all()


def test_several_bundles_are_split_at_once_as_they_are_one_after_the_other() -> None:
    state = busy()
    at_once = divided(state, [split(0x80000000, bundle=1), split(0x10000000, 0x20000000)])
    later = divided(divided(state, [split(0x80000000, bundle=1)]).state, [split(0x10000000, 0x20000000)])
    assert at_once.parent.tolist() == [0, 0, 0, 1, 1]
    assert [list(at_once.children(one)) for one in at_once.splits] == [[3, 4], [0, 1, 2]]
    for name in ("lower", "upper", "topics", "traffic", "owner"):
        both = (getattr(division.state.bundles, name) for division in (at_once, later))
        assert np.array_equal(*both)
    assert np.array_equal(at_once.state.topics.bundle, later.state.topics.bundle)
    for child in range(5):
        alone = np.flatnonzero(state.topics.bundle == at_once.parent[child])
        assert set(np.flatnonzero(at_once.state.topics.bundle == child)) <= set(alone)


def test_no_unload_of_the_children_is_known() -> None:
    state = busy()
    state.bundles.last_unloaded_at_ms[:] = 5
    assert divided(state, [split(0x20000000)]).state.bundles.last_unloaded_at_ms.tolist() == [0, 0, 5]


def test_no_child_is_among_the_top_bundles_that_were_published() -> None:
    before = busy()
    brokers, bundles = len(before.brokers), len(before.bundles)
    published = PublishedLoad(np.full(brokers, 0.5), np.full(brokers, 1e6), np.arange(bundles))
    after = divided(replace(before, published_load=published), [split(0x20000000)]).state.published_load
    assert after is not None
    assert after.top_position.tolist() == [NO_ROW, NO_ROW, *range(1, bundles)]
