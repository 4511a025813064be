"""Splits of bundles whose load is one topic's, or has gone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.planning.advice.vain_splits import only_splits_in_vain
from states import WHOLE, BrokerRow, BundleRow, cluster_state
from unit.execution.doubles import make_plan, split_step, unload_step

SPLIT = split_step(1, namespace="t/hot", bundle=WHOLE)


def with_topics(*rates: float, producers: int = 0) -> ClusterState:
    names = [f"persistent://t/hot/topic-{number}" for number in range(len(rates))]
    bundle = BundleRow("t/hot", WHOLE, "a:8080", (sum(rates), 0.0, 0.0, 0.0), len(rates), producers=producers)
    state = cluster_state([BrokerRow("a:8080")], [bundle], topics=names)
    traffic = np.array([(rate, 0.0, 0.0, 0.0) for rate in rates])
    return replace(state, topics=replace(state.topics, traffic=traffic, loaded=np.ones(len(rates), dtype=np.bool_)))


@pytest.mark.parametrize(
    ("state", "what_if", "expected"),
    [
        (with_topics(950.0, 30.0, 20.0), {}, True),
        (with_topics(500.0, 480.0), {}, False),
        (with_topics(0.0, 0.0), {}, False),
        (with_topics(950.0, 30.0, 20.0), {"loadBalancerNamespaceBundleMaxTopics": "2"}, False),
        (with_topics(950.0, 30.0, producers=9), {"loadBalancerNamespaceBundleMaxSessions": "8"}, False),
    ],
)
def test_a_split_is_in_vain_if_one_topic_is_all_the_load_and_the_only_excess(
    state: ClusterState, what_if: dict[str, str], expected: bool
) -> None:
    settings = resolve_settings("4.0.8", what_if=what_if).values
    assert only_splits_in_vain(make_plan([SPLIT]), state, settings) is expected


def test_a_split_by_the_long_term_average_of_a_bundle_that_is_idle_now_is_in_vain() -> None:
    settings, state = resolve_settings("4.0.8").values, with_topics(1000.0, 1000.0)
    state.bundles.traffic[0, 2:] = 1e6
    state.bundles.long_term[0] = (40_000.0, 0.0, 1e6, 1e6)
    assert not only_splits_in_vain(make_plan([SPLIT]), state, settings), "it has as many bytes as ever"
    state.bundles.long_term[0, 2:] = 4e7
    assert only_splits_in_vain(make_plan([SPLIT]), state, settings)
    state.bundles.topics[0] = settings.load_balancer_namespace_bundle_max_topics + 1
    assert not only_splits_in_vain(make_plan([SPLIT]), state, settings)


def test_a_plan_that_also_does_something_else_is_not_in_vain() -> None:
    state, settings = with_topics(950.0, 30.0, 20.0), resolve_settings("4.0.8").values
    other = split_step(2, namespace="t/hot", bundle="0x00000000_0x40000000")
    for steps in ([SPLIT, other], [SPLIT, unload_step(2)], []):
        assert not only_splits_in_vain(make_plan(steps), state, settings)
