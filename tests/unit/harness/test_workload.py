"""The load's shape, before any broker sees it."""

from __future__ import annotations

import pytest

from harness.sensor import Machine
from harness.workload import (
    DIVIDED,
    Workload,
    bundle_range,
    crowded_workload,
    divided_workload,
    skewed_workload,
    topic_hash,
)


def is_inside(topic: str, bundle: str) -> bool:
    low, high = (int(boundary, 16) for boundary in bundle.rpartition("/")[2].split("_"))
    return topic.split("://")[1].startswith(bundle.rpartition("/")[0]) and low <= topic_hash(topic) < high


def broker_of_topics(workload: Workload) -> dict[str, int]:
    """Of the topics without partitions."""
    names = [topic.name for topic in workload.topics if not topic.partitions]
    return {name: broker for name in names for bundle, broker in workload.brokers.items() if is_inside(name, bundle)}


def test_the_same_seed_gives_the_same_workload_and_another_seed_another() -> None:
    assert skewed_workload(7) == skewed_workload(7)
    assert skewed_workload(7) != skewed_workload(8)


def test_bundle_ranges_tile_the_ring_as_pulsar_writes_them() -> None:
    assert [bundle_range(index, 4) for index in range(4)] == [
        (0x00000000, 0x40000000),
        (0x40000000, 0x80000000),
        (0x80000000, 0xC0000000),
        (0xC0000000, 0xFFFFFFFF),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_the_hot_bundle_has_even_halves_that_are_under_the_threshold_when_split(seed: int) -> None:
    checkout = [topic for topic in skewed_workload(seed).topics if "checkout" in topic.name]
    halves = [
        2 * sum(topic.messages_per_s for topic in checkout if (topic_hash(topic.name) < 0x20000000) is lower)
        for lower in (True, False)
    ]
    assert sum(halves) > 500
    assert max(halves) < 500


def test_the_bundles_that_brokers_look_up_by_themselves_are_placed_first() -> None:
    # CRC-32 of persistent://NAMESPACE/__change_events: 0x8de1c97d, 0xbd3c32d1, 0xd4506a4e, 0x93173147.
    assert skewed_workload().placement_order[:4] == [
        "retail/payments/0x80000000_0xc0000000",
        "retail/orders/0x80000000_0xc0000000",
        "telemetry/devices/0xc0000000_0xffffffff",
        "telemetry/alerts/0x80000000_0xffffffff",
    ]


def test_a_crowded_cluster_has_the_same_load_on_its_first_broker() -> None:
    crowded, skewed = crowded_workload(7), skewed_workload(7)
    assert (crowded.topics, crowded.brokers.keys()) == (skewed.topics, skewed.brokers.keys())
    assert set(crowded.brokers.values()) == {0}
    machine = Machine()
    assert machine.cores_used(2 * crowded.messages_per_s) > 1.3 * machine.cores


def test_the_divided_load_is_the_same_on_each_broker_in_namespaces_of_32_bundles() -> None:
    divided, skewed = divided_workload(7), skewed_workload(7)
    assert divided.topics == skewed.topics
    assert set(divided.namespaces.values()) == {DIVIDED}
    assert broker_of_topics(divided) == broker_of_topics(skewed)


@pytest.mark.parametrize("workload", [skewed_workload(), divided_workload()])
def test_every_placed_bundle_has_a_plain_topic_to_look_up(workload: Workload) -> None:
    for bundle in workload.brokers:
        assert is_inside(workload.topic_inside(bundle), bundle)
