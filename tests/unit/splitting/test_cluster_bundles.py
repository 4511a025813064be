from __future__ import annotations

from dataclasses import replace

import numpy as np

from pulsar_advisor.model.cluster.bundle_range import topic_hash
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.java.maps import concurrent_map_order, string_hashes
from pulsar_advisor.splitting.cluster_bundles import bundle_counts, bundle_topics, reported_bundles
from states import WHOLE, BrokerRow, BundleRow, cluster_state

RANGES = [f"0x{number:08x}_0x{number + 1:08x}" for number in range(40)]


def test_bundles_are_visited_broker_by_broker_in_the_order_of_javas_maps():
    brokers = [f"broker-{number}:8080" for number in range(5)]
    state = cluster_state(
        [BrokerRow(broker) for broker in brokers],
        [BundleRow("t/n", text, brokers[number % 5], topics=2) for number, text in enumerate(RANGES)],
    )
    expected = []
    for broker in concurrent_map_order(string_hashes(brokers)):
        rows = np.flatnonzero(state.bundles.owner == broker)
        names = [state.bundle_name(int(row)) for row in rows]
        expected += rows[concurrent_map_order(string_hashes(names))].tolist()
    assert reported_bundles(state).tolist() == expected


def test_bundles_without_figures_or_owner_are_not_visited():
    rows = [BundleRow("t/n", RANGES[0], "a:8080"), BundleRow("t/n", RANGES[1], None, topics=2)]
    assert reported_bundles(cluster_state([BrokerRow("a:8080")], rows)).tolist() == []


def test_a_namespace_has_as_many_bundles_as_its_boundaries_say():
    rows = [
        BundleRow("t/m", RANGES[0], None),
        BundleRow("t/n", RANGES[0], None),
        BundleRow("t/n", RANGES[1], None),
        BundleRow("t/n", RANGES[2], None, in_boundaries=False),
    ]
    state = cluster_state([BrokerRow("a:8080")], rows)
    assert bundle_counts(state, resolve_settings("4.0.8").values).tolist() == [1, 2]


def test_pulsars_split_algorithms_do_not_see_segments():
    state = cluster_state(
        [BrokerRow("a:8080")],
        [BundleRow("t/n", WHOLE, "a:8080", topics=1)],
        topics=["persistent://t/n/x", "segment://t/n/y/0000-ffff-0", "segment://t/n/y/8000-ffff-2"],
    )
    everything = bundle_topics(state, 0)
    listed = bundle_topics(state, 0, listed_only=True)
    assert everything is not None
    assert listed is not None
    assert len(everything) == 3
    assert listed.hash.tolist() == [topic_hash("persistent://t/n/x")]


def test_the_topics_of_a_bundle_are_known_only_with_the_complete_listing():
    state = cluster_state(
        [BrokerRow("a:8080")],
        [BundleRow("t/n", WHOLE, "a:8080", topics=1)],
        topics=["persistent://t/n/x", "persistent://t/n/y"],
    )
    known = bundle_topics(state, 0)
    assert known is not None
    assert sorted(known.hash) == sorted(state.topics.hash)
    assert bundle_topics(replace(state, missing={"topic_names": "not read"}), 0) is None
    assert bundle_topics(replace(state, unlisted_namespaces=frozenset({"t/n"})), 0) is None
    assert bundle_topics(replace(state, unlisted_namespaces=frozenset({"t/other"})), 0) is not None
