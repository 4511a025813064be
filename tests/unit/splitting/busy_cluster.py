"""A broker with a hot bundle of many topics, and a cool one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.strategy.decision import Split
from states import BrokerRow, BundleRow, cluster_state

NAMES = tuple(f"persistent://t/hot/topic-{number}" for number in range(40))
HOT, COOL = "a:8080", "b:8080"


def busy(load_manager: str = "modular", names: tuple[str, ...] = NAMES) -> ClusterState:
    """Two brokers; the hot one owns the first quarter of a namespace, whose topics have 10 msg/s in and out each."""
    state = cluster_state(
        [
            BrokerRow(HOT, cpu=(80.0, 100.0), traffic=(1000.0, 1000.0, 0.0, 0.0), topics=40),
            BrokerRow(COOL, cpu=(10.0, 100.0), traffic=(10.0, 10.0, 0.0, 0.0), topics=1),
        ],
        [
            BundleRow("t/hot", "0x00000000_0x40000000", HOT, (900.0, 900.0, 0.0, 0.0), topics=10),
            BundleRow("t/hot", "0x40000000_0xffffffff", HOT, (100.0, 100.0, 0.0, 0.0), topics=30),
        ],
        topics=names,
        load_manager=load_manager,  # type: ignore[arg-type]
    )
    traffic = np.tile([10.0, 10.0, 0.0, 0.0], (len(names), 1))
    return replace(state, topics=replace(state.topics, traffic=traffic))


def split(*boundaries: int, bundle: int = 0) -> Split:
    return Split(bundle, "range_equally_divide", boundaries, "too hot", near_tie=False)
