from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import codes
from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.strategy.decision import SplittingDecision
from pulsar_advisor.model.strategy.memory import SplitMemory
from pulsar_advisor.splitting.bundle_splitter_task import decide, select
from pulsar_advisor.splitting.limits import SplitLimits
from states import LOWER_HALF, UPPER_HALF, WHOLE, BrokerRow, BundleRow, cluster_state
from unit.splitting.bundle_figures import figures

TWO_BROKERS = (BrokerRow("a:8080"), BrokerRow("b:8080"))
HOT = (20_000.0, 20_000.0, 0.0, 0.0)


def settings(release: str = "4.0.8", **what_if: object) -> LoadBalancerSettings:
    return resolve_settings(release, what_if={key: str(value) for key, value in what_if.items()}).values


def run(state: ClusterState, values: LoadBalancerSettings | None = None) -> SplittingDecision:
    return decide(state, values or settings(), SplitMemory())[0]


def two_bundles(**hot: object) -> ClusterState:
    return cluster_state(
        TWO_BROKERS,
        [
            BundleRow("t/n", LOWER_HALF, "a:8080", traffic=HOT, **{"topics": 3, **hot}),
            BundleRow("t/n", UPPER_HALF, "b:8080", topics=3),
        ],
    )


def test_a_bundle_with_a_high_long_term_rate_is_halved_with_the_reason():
    decision = run(two_bundles())
    (split,) = decision.splits
    assert (split.bundle, split.algorithm, split.boundaries) == (0, "range_equally_divide", (0x40000000,))
    assert split.reason == "40,000.0 messages/s exceed the limit of 30,000"
    assert codes(decision.bundles) == {0: "split_msg_rate", 1: "below_limits_topics"}


def test_only_the_long_term_average_counts_not_the_last_statistics():
    state = two_bundles()
    calm = replace(state, bundles=replace(state.bundles, long_term=np.zeros((2, 4))))
    assert run(calm).splits == ()


def test_a_bundle_of_one_loaded_topic_is_left_alone():
    assert codes(run(two_bundles(topics=1)).bundles)[0] == "few_topics"


def test_a_bundle_that_nobody_reports_is_not_looked_at():
    assert 0 not in codes(run(two_bundles(topics=0)).bundles)


def test_a_namespace_at_its_maximum_is_left_alone():
    decision = run(two_bundles(), settings(loadBalancerNamespaceMaximumBundles=2))
    assert codes(decision.bundles)[0] == "namespace_full"
    assert decision.bundles.explain(decision.bundles.index.tolist().index(0)) == (
        "too big, but its namespace has 2 bundles, with the splits chosen before; its maximum is 2"
    )


def test_bundles_chosen_before_count_towards_the_maximum():
    state = cluster_state(
        TWO_BROKERS,
        [BundleRow("t/n", LOWER_HALF, "a:8080", HOT, 3), BundleRow("t/n", UPPER_HALF, "b:8080", HOT, 3)],
    )
    decision = run(state, settings(loadBalancerNamespaceMaximumBundles=3))
    assert sorted(codes(decision.bundles).values()) == ["namespace_full", "split_msg_rate"]
    assert len(decision.splits) == 1


def test_bundles_of_other_namespaces_do_not():
    state = cluster_state(
        TWO_BROKERS,
        [BundleRow("t/n", LOWER_HALF, "a:8080", HOT, 3), BundleRow("t/m", LOWER_HALF, "b:8080", HOT, 3)],
    )
    assert len(run(state, settings(loadBalancerNamespaceMaximumBundles=2)).splits) == 2


def test_a_range_one_wide_is_left_alone():
    state = cluster_state(TWO_BROKERS, [BundleRow("t/n", "0x00000005_0x00000006", "a:8080", HOT, 3)])
    decision = run(state)
    assert (codes(decision.bundles), decision.splits) == ({0: "narrow_range"}, ())


def test_a_bundle_that_is_gone_is_left_alone():
    assert codes(run(two_bundles(in_boundaries=False)).bundles)[0] == "not_in_boundaries"


@pytest.mark.parametrize(("release", "expected"), [("2.11.0", "split_msg_rate"), ("3.0.7", "one_broker")])
def test_a_single_broker_splits_up_to_3_0_0_only(release, expected):
    state = cluster_state([BrokerRow("a:8080")], [BundleRow("t/n", LOWER_HALF, "a:8080", HOT, 3)])
    assert codes(run(state, settings(release)).bundles) == {0: expected}


def test_the_topics_of_a_bundle_are_all_by_name():
    names = [f"persistent://t/n/topic-{number}" for number in range(8)]
    state = cluster_state(TWO_BROKERS, [BundleRow("t/n", WHOLE, "a:8080", HOT, 3)], topics=names)
    (split,) = run(state, settings(defaultNamespaceBundleSplitAlgorithm="topic_count_equally_divide")).splits
    hashes = sorted(state.topics.hash.tolist())
    assert split.boundaries == (hashes[3] + (hashes[4] - hashes[3]) // 2,)


def test_an_algorithm_that_finds_nothing_to_do_gives_a_split_without_boundaries():
    topic_count = settings(defaultNamespaceBundleSplitAlgorithm="topic_count_equally_divide")
    (split,) = run(two_bundles(), topic_count).splits
    assert split.boundaries == ()


def test_a_bundle_whose_topics_are_not_completely_listed_is_left_out_and_the_others_are_split():
    whole = (WHOLE, "a:8080", HOT, 3)
    topics = [f"persistent://t/{namespace}/{number}" for namespace in ("n", "other") for number in range(4)]
    state = cluster_state(TWO_BROKERS, [BundleRow("t/n", *whole), BundleRow("t/other", *whole)], topics=topics)
    by_topics = settings(defaultNamespaceBundleSplitAlgorithm="topic_count_equally_divide")
    decision = run(replace(state, unlisted_namespaces=frozenset({"t/n"})), by_topics)
    assert codes(decision.bundles) == {0: "topics_unknown", 1: "split_msg_rate"}
    assert [split.bundle for split in decision.splits] == [1]


def test_without_the_complete_listing_a_range_can_still_be_halved():
    assert run(replace(two_bundles(), missing={"topic_names": "not read"})).splits


def test_an_algorithm_that_needs_positions_fails_on_every_automatic_split():
    decision = run(two_bundles(), settings(defaultNamespaceBundleSplitAlgorithm="specified_positions_divide"))
    assert (codes(decision.bundles)[0], decision.splits) == ("algorithm_fails", ())


def test_a_boundary_on_the_lower_bound_can_not_be_carried_out():
    state = cluster_state(
        TWO_BROKERS, [BundleRow("t/n", "0x00000007_0xffffffff", "a:8080", HOT, 3)], topics=["persistent://t/n/x"] * 2
    )
    collided = replace(state, topics=replace(state.topics, hash=np.array([7, 7]), bundle=np.array([0, 0])))
    decision = run(collided, settings(defaultNamespaceBundleSplitAlgorithm="topic_count_equally_divide"))
    assert (codes(decision.bundles), decision.splits) == ({0: "boundary_outside"}, ())


def test_bundles_of_a_name_that_is_no_namespace_can_not_be_counted():
    state = cluster_state(TWO_BROKERS, [BundleRow("t/c/n", LOWER_HALF, "a:8080", HOT, 3)])
    assert codes(run(state, settings("4.0.8")).bundles) == {0: "split_msg_rate"}
    assert codes(run(state, settings("4.2.4")).bundles) == {0: "bundle_count_unknown"}


def test_nothing_is_both_split_and_left_alone():
    decision = run(two_bundles())
    chosen = decision.bundles.index[decision.bundles.chosen()]
    assert set(chosen.tolist()) == {split.bundle for split in decision.splits}


def test_a_cluster_without_bundles_is_left_alone():
    decision = run(cluster_state(TWO_BROKERS, []))
    assert (decision.splits, len(decision.bundles)) == ((), 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2000), st.floats(0, 1e5) | st.just(float("nan"))), max_size=30
    ),
    st.randoms(use_true_random=False),
    st.integers(0, 20),
)
def test_the_visiting_order_decides_nothing_but_who_wins_where_the_maximum_binds(bundles, random, count):
    def selected(order: list[int]) -> tuple[set[int], list[int]]:
        rows = [bundles[position] for position in order]
        of = figures(
            [topics for _, topics, _ in rows],
            index=order,
            namespace=[namespace for namespace, _, _ in rows],
            msg_rate=[rate for _, _, rate in rows],
        )
        limits = SplitLimits(1000, 0, 30_000, 1 << 20, namespace_bundles=20)
        chosen = select(of, limits, np.full(4, count, dtype=np.int64)).chosen()
        numbers = np.bincount(of.namespace[chosen], minlength=4).tolist()
        return set(of.index[chosen].tolist()), numbers

    order = list(range(len(bundles)))
    shuffled = order.copy()
    random.shuffle(shuffled)
    rows, numbers = selected(order)
    rows_shuffled, numbers_shuffled = selected(shuffled)
    assert numbers == numbers_shuffled
    assert max(numbers) <= 20 - count
    if max(numbers) < 20 - count:
        assert rows == rows_shuffled
