from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.bundle_range import topic_hash
from pulsar_advisor.model.cluster_state import NOBODY
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.splitting.largest_and_hot import hot_bundle, largest_bundle
from states import BrokerRow, BundleRow, cluster_state

HALVES = ("0x00000000_0x80000000", "0x80000000_0xffffffff")


def state(topics=(), load_manager="modular", throughputs=(1.0, 2.0), loaded=(3, 3)):
    return cluster_state(
        [BrokerRow("a:8080")],
        [
            BundleRow("t/n", bounds, "a:8080", (0.0, 0.0, throughput, 0.0), number)
            for bounds, throughput, number in zip(HALVES, throughputs, loaded, strict=True)
        ],
        topics=topics,
        load_manager=load_manager,
    )


def in_half(half: int, domain: str, count: int) -> list[str]:
    names = (f"{domain}://t/n/topic-{number:03d}" for number in range(1000))
    lower, upper = (0, 1 << 31) if half == 0 else (1 << 31, 1 << 32)
    return [name for name in names if lower <= topic_hash(name) < upper][:count]


def test_largest_has_the_most_persistent_topics():
    topics = [*in_half(0, "persistent", 2), *in_half(1, "persistent", 3)]
    assert largest_bundle(state(topics), 0) == 1


def test_non_persistent_topics_do_not_count():
    topics = [*in_half(0, "persistent", 2), *in_half(1, "non-persistent", 3)]
    assert largest_bundle(state(topics), 0) == 0


def test_of_equals_the_first_to_reach_the_number_is_largest():
    topics = [*in_half(0, "persistent", 2), *in_half(1, "persistent", 2)]
    found = state(topics)
    last = int(found.topics.bundle[-1])
    assert largest_bundle(found, 0) == 1 - last


def test_without_persistent_topics_there_is_none():
    assert largest_bundle(state(), 0) == NOBODY


def test_largest_refuses_without_the_complete_listing():
    with pytest.raises(DataNotFit, match="LARGEST can't be told for t/n"):
        largest_bundle(replace(state(), missing={"topic_names": "not read"}), 0)


def test_hot_has_the_greatest_long_term_throughput():
    assert hot_bundle(state(), 0) == 1


def test_hot_has_loaded_topics():
    assert hot_bundle(state(loaded=(3, 0)), 0) == 0


def test_of_equals_the_first_by_range_is_hot():
    assert hot_bundle(state(throughputs=(2.0, 2.0)), 0) == 0


def test_a_bundle_without_throughput_can_be_hot():
    assert hot_bundle(state(throughputs=(0.0, 0.0)), 0) == 0


def test_a_throughput_that_is_no_number_is_not_hot():
    found = state()
    found.bundles.long_term[1, 2] = np.nan
    assert hot_bundle(found, 0) == 0


def test_under_other_managers_hot_means_largest():
    topics = in_half(0, "persistent", 1)
    assert hot_bundle(state(topics, load_manager="extensible"), 0) == 0
