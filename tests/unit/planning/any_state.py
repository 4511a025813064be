"""Any cluster state, with any other values for some of its inputs, and answers about it as text."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import RESOURCES, ClusterState, IsolationPolicy
from pulsar_advisor.model.cluster.inputs import Input
from states import QUARTERS, BrokerRow, BundleRow, cluster_state

EAGER = {
    "loadBalancerBrokerOverloadedThresholdPercentage": "50",
    "loadBalancerBrokerComfortLoadLevelPercentage": "60",
    "loadBalancerBundleUnloadMinThroughputThreshold": "0",
    "loadBalancerBrokerLoadTargetStd": "0.05",
    "loadBalancerSheddingConditionHitCountThreshold": "0",
    "minUnloadMessage": "0",
    "minUnloadMessageThroughput": "0",
    "maxUnloadPercentage": "0.5",
    "loadBalancerNamespaceBundleMaxTopics": "3",
    "loadBalancerNamespaceBundleMaxMsgRate": "200",
    "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": "0",
    "flowOrQpsDifferenceThresholdPercentage": "1",
}


LOADS = [(rate, rate, 1e4 * rate, 1e4 * rate) for rate in (10.0, 40.0, 160.0)]
"""Of bundles; equal ones are distinguished by their topics and connections."""


def any_state(seed: int, load_manager: str) -> ClusterState:
    """Five uneven brokers, forty bundles in ten namespaces, with every figure different from every other."""
    draw = random.Random(seed)
    ids = [f"broker-{number}:8080" for number in range(5)]
    bundles = [
        BundleRow(
            f"t/n{number}",
            text,
            draw.choices(ids, (6, 3, 2, 1, 1))[0],
            draw.choice(LOADS),
            topics=draw.randint(1, 6),
        )
        for number in range(10)
        for text in QUARTERS
    ]
    brokers = [
        BrokerRow(
            name,
            cpu=(draw.uniform(5, 95), 100.0),
            traffic=tuple(draw.uniform(100, 9000) * unit for unit in (1.0, 1.0, 1e4, 1e4)),
            topics=draw.randint(1, 60),
        )
        for name in ids
    ]
    names = [f"persistent://t/n{number}/topic-{topic}" for number in range(10) for topic in range(12)]
    state = cluster_state(brokers, bundles, topics=names, load_manager=load_manager)  # type: ignore[arg-type]
    columns = np.arange(len(RESOURCES))
    limit = np.where(
        columns == RESOURCES.index("cpu"), 100.0, np.where(columns == RESOURCES.index("memory"), 800.0, 1e6)
    )
    usage = state.brokers.usage.copy()
    usage[:, RESOURCES.index("memory")] = [draw.uniform(0, 800) for _ in ids]
    brokers_of_it = replace(state.brokers, usage=usage, limit=np.tile(limit, (len(ids), 1)))
    return changed(replace(state, brokers=brokers_of_it), frozenset({"topic_traffic"}), seed)


def _figures(draw: np.random.Generator, like: np.ndarray) -> np.ndarray:
    """Four figures a row, now and then none at all."""
    idle = draw.random((len(like), 1)) < 0.2
    return np.where(idle, 0.0, draw.uniform(1, 400, like.shape) * np.array([1.0, 1.0, 1e4, 1e4]))


def _counts(draw: np.random.Generator, like: np.ndarray) -> np.ndarray:
    return np.where(draw.random(like.shape) < 0.2, 0, draw.integers(1, 50_000, like.shape))


Change = Callable[[ClusterState, np.random.Generator], ClusterState]


def _in_brokers(**make: Callable[[np.random.Generator, np.ndarray], np.ndarray]) -> Change:
    def change(state: ClusterState, draw: np.random.Generator) -> ClusterState:
        new = {name: how(draw, getattr(state.brokers, name)) for name, how in make.items()}
        return replace(state, brokers=replace(state.brokers, **new))

    return change


def _in_bundles(**make: Callable[[np.random.Generator, np.ndarray], np.ndarray]) -> Change:
    def change(state: ClusterState, draw: np.random.Generator) -> ClusterState:
        new = {name: how(draw, getattr(state.bundles, name)) for name, how in make.items()}
        return replace(state, bundles=replace(state.bundles, **new))

    return change


def _recently(state: ClusterState) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
    return lambda draw, like: np.where(draw.random(like.shape) < 0.7, state.captured_at_ms - 1000, 0)


def _isolate(state: ClusterState, _draw: np.random.Generator) -> ClusterState:
    policy = IsolationPolicy("p", ("t/n[0-7]",), ("broker-[01]",), (), 0, 0)
    return replace(state, isolation_policies=(policy,))


def _group(state: ClusterState, _draw: np.random.Generator) -> ClusterState:
    groups = ("g",) * len(state.namespaces)
    return replace(state, namespaces=replace(state.namespaces, anti_affinity_groups=groups))


def _in_domains(state: ClusterState, _draw: np.random.Generator) -> ClusterState:
    return replace(state, failure_domains=("one", "two", "one", "two", "three"))


def _other_names(state: ClusterState, draw: np.random.Generator) -> ClusterState:
    """Every topic stays in its bundle, at another position."""
    lower, upper = (bounds[state.topics.bundle] for bounds in (state.bundles.lower, state.bundles.upper))
    return replace(state, topics=replace(state.topics, hash=draw.integers(lower, upper)))


def _other_traffic(state: ClusterState, draw: np.random.Generator) -> ClusterState:
    topics = state.topics
    loaded = draw.random(len(topics)) < 0.9
    return replace(state, topics=replace(topics, traffic=_figures(draw, topics.traffic), loaded=loaded))


CHANGES: Mapping[Input, Change] = {
    "broker_usage": _in_brokers(usage=lambda draw, like: draw.uniform(5, 95, like.shape)),
    "broker_traffic": _in_brokers(traffic=lambda draw, like: 20 * _figures(draw, like)),
    "broker_counts": _in_brokers(
        topics=lambda draw, like: draw.integers(1, 90_000, like.shape),
        bundles=lambda draw, like: draw.integers(0, 3, like.shape),
        producers=_counts,
        consumers=_counts,
    ),
    "bundle_traffic": _in_bundles(traffic=_figures),
    "bundle_counts": _in_bundles(topics=_counts, producers=_counts, consumers=_counts, cache_size_bytes=_counts),
    "short_term_averages": _in_bundles(short_term=_figures, short_term_samples=_counts),
    "long_term_averages": _in_bundles(long_term=_figures, long_term_samples=_counts),
    "recent_unloads": lambda state, draw: _in_bundles(last_unloaded_at_ms=_recently(state))(state, draw),
    "isolation_policies": _isolate,
    "anti_affinity": _group,
    "failure_domains": _in_domains,
    "topic_names": _other_names,
    "topic_traffic": _other_traffic,
}


def changed(state: ClusterState, inputs: frozenset[Input], seed: int) -> ClusterState:
    """The state with other values for these inputs."""
    draw = np.random.default_rng(seed)
    for name in sorted(inputs):
        state = CHANGES[name](state, draw)
    return state


def plain(value: Any) -> str:
    """An answer as text, arrays and all."""
    if hasattr(value, "__dataclass_fields__"):
        return f"({', '.join(plain(getattr(value, item.name)) for item in fields(value))})"
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(plain, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {plain(item)}' for key, item in value.items())}}}"
    return repr(value)
