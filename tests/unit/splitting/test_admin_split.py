"""What becomes of chosen bundles when the manager has them split through the admin API."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.strategy.decision import Split
from pulsar_advisor.splitting.admin_split import admin_splits
from pulsar_advisor.splitting.cluster_bundles import figures_of, reported_bundles
from pulsar_advisor.splitting.limits import SplitLimits
from pulsar_advisor.splitting.verdicts import SplitOutcome, Verdicts
from states import LOWER_HALF, BrokerRow, BundleRow, cluster_state

TOPICS = tuple(f"persistent://t/n/topic-{number}" for number in range(8))


def cluster(text: str = LOWER_HALF, in_boundaries: bool = True, topics: tuple[str, ...] = TOPICS) -> ClusterState:
    bundles = [BundleRow("t/n", text, "a:8080", topics=5, in_boundaries=in_boundaries)]
    return cluster_state([BrokerRow("a:8080")], bundles, topics=topics)


def split(state: ClusterState, algorithm: str = "range_equally_divide") -> tuple[tuple[Split, ...], str]:
    """The splits of the one bundle, whose topics exceed their limit, and the answer about it."""
    what_if = {"defaultNamespaceBundleSplitAlgorithm": algorithm, "loadBalancerNamespaceBundleMaxTopics": "4"}
    settings = resolve_settings("4.0.8", what_if=what_if).values
    figures = figures_of(state, reported_bundles(state), state.bundles.traffic)
    verdicts = Verdicts.by_limits(figures, SplitLimits.from_settings(settings, bandwidth_bits=32))
    splits = admin_splits(state, settings, figures, verdicts, verdicts.chosen().tolist())
    return splits, SplitOutcome(verdicts.code[0]).code


def test_a_bundle_is_cut_by_the_brokers_default_algorithm() -> None:
    (one,), answer = split(cluster())
    assert (one.algorithm, one.boundaries, answer) == ("range_equally_divide", (0x40000000,), "split_topics")
    assert one.reason == "5 topics exceed the limit of 4"


@pytest.mark.parametrize(
    ("state", "algorithm", "answer"),
    [
        (cluster("0x00000000_0x00000001"), "range_equally_divide", "narrow_range"),
        (cluster(in_boundaries=False), "range_equally_divide", "not_in_boundaries"),
        (cluster(), "specified_positions_divide", "algorithm_fails"),
    ],
)
def test_a_split_that_can_not_succeed_is_left_out_and_said_so(state: ClusterState, algorithm: str, answer: str) -> None:
    assert split(state, algorithm) == ((), answer)


def test_an_algorithm_with_nothing_to_do_leaves_a_split_without_boundaries() -> None:
    (one,), _ = split(cluster(topics=()), "topic_count_equally_divide")
    assert one.boundaries == ()
