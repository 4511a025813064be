"""The Simple manager's own placement."""

from __future__ import annotations

import numpy as np
import pytest

from pulsar_advisor.model.cluster.cluster_state import RESOURCES, ClusterState
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.placement.simple_load_manager_impl import Memory, choose, final_rank, observe
from states import QUARTERS, BrokerRow, BundleRow, cluster_state


def state(busy: float, busier: float, *, with_idle: bool = True) -> ClusterState:
    network = {"bandwidth_in": (0.0, 10_000_000.0), "bandwidth_out": (0.0, 10_000_000.0)}
    brokers = [
        BrokerRow("busier:8080", cpu=(busier, 100), **network),
        BrokerRow("busy:8080", cpu=(busy, 100), **network),
        BrokerRow("idle:8080", cpu=(1, 100), **network),
    ]
    return cluster_state(
        brokers if with_idle else brokers[:2],
        [
            BundleRow("t/n", QUARTERS[0], "busier:8080", (10, 0, 0, 0), topics=1),
            BundleRow("t/n", QUARTERS[1], "busier:8080", (10, 0, 0, 0), topics=1),
            BundleRow("t/n", QUARTERS[2], "busy:8080", (900, 0, 0, 0), topics=1),
            BundleRow("t/n", QUARTERS[3], None, topics=0),
        ],
        load_manager="simple",
    )


def place(of: ClusterState, strategy: str, memory: Memory | None = None, bundle: int = 3) -> tuple[list[str], str]:
    settings = resolve_settings("4.0.8", {"loadBalancerPlacementStrategy": strategy}).values
    view = observe(of, settings, of.captured_at_ms)
    everyone = np.arange(len(of.brokers), dtype=np.int32)
    decision, _ = choose(view, everyone, bundle, settings, memory or Memory())
    reasons = [decision.brokers.vocabulary[code] for code in decision.brokers.code]
    return (
        [of.brokers.ids[row].partition(":")[0] for row in decision.eligible],
        next(outcome.code for outcome in reasons if outcome.chosen),
    )


@pytest.mark.parametrize(
    ("busy", "busier", "with_idle", "answer"),
    [
        (30, 40, True, (["busy"], "best_busy")),
        (60, 70, True, (["idle"], "idle")),
        (60, 70, False, (["busy"], "best_busy")),
        (90, 99, False, (["busy"], "most_room")),
        (100, 100, False, (["busier"], "rotating")),
    ],
)
def test_least_loaded_server(busy: float, busier: float, with_idle: bool, answer: tuple[list[str], str]) -> None:
    assert place(state(busy, busier, with_idle=with_idle), "leastLoadedServer") == answer


def test_least_msg_per_second_goes_by_the_quotas_of_the_bundles() -> None:
    assert place(state(30, 40), "leastMsgPerSecond") == (["busier"], "best_busy")


def test_the_rotation_goes_on() -> None:
    full = state(100, 100, with_idle=False)
    assert place(full, "leastLoadedServer", Memory(cursor=1))[0] == ["busy"]


def test_any_other_text_draws_by_weight() -> None:
    of = state(30, 40)
    of.brokers.limit[:, RESOURCES.index("memory")] = 8000
    settings = resolve_settings("4.0.8", {"loadBalancerPlacementStrategy": "weightedRandomSelection"}).values
    decision, _ = choose(observe(of, settings, of.captured_at_ms), np.arange(3, dtype=np.int32), 3, settings, Memory())
    # 100 % of CPU / 0.025 a message / 160 messages a bundle = 25 bundles, times the square of the free share.
    weights = dict(zip((of.brokers.ids[row] for row in decision.brokers.index), decision.brokers.left, strict=True))
    assert weights == {"busier:8080": 9, "busy:8080": 12, "idle:8080": 24}
    assert len(decision.eligible) == 3


def test_without_any_room_everybody_is_drawn_among() -> None:
    assert place(state(100, 100, with_idle=False), "weightedRandomSelection") == (
        ["busier", "busy"],
        "all_without_weight",
    )


def test_the_bundle_itself_does_not_count_where_it_is() -> None:
    of = state(30, 40)
    assert place(of, "leastLoadedServer", bundle=2) == (["busier"], "best_busy")


def test_ranks_still_count_the_bundle_where_it_is() -> None:
    of = state(1, 40)
    of.brokers.limit[:, RESOURCES.index("memory")] = 8000
    settings = resolve_settings("4.0.8", {"loadBalancerPlacementStrategy": "weightedRandomSelection"}).values
    decision, _ = choose(observe(of, settings, of.captured_at_ms), np.arange(3, dtype=np.int32), 2, settings, Memory())
    # 905 messages/s * 0.025 are 22.6 %.
    assert decision.brokers.left.tolist() == [9, 14, 24]


def test_a_load_that_is_no_number_ranks_first_and_is_the_heaviest() -> None:
    of = state(60, 40, with_idle=False)
    of.brokers.limit[:, RESOURCES.index("memory")] = 8000
    of.brokers.usage[1, RESOURCES.index("cpu")] = np.nan
    settings = resolve_settings("4.0.8").values
    assert final_rank(observe(of, settings, of.captured_at_ms).ranking, "leastLoadedServer").tolist() == [40, 0]
    assert place(of, "leastLoadedServer") == (["busier"], "best_busy")
