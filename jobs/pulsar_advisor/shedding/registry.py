"""The shedders on offer. Adding one means a module, a line here and a page in docs/strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from pulsar_advisor.model.strategy import Strategy, find

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_advisor.model.cluster_state import ClusterState
    from pulsar_advisor.model.decision import SheddingDecision
    from pulsar_advisor.model.settings import LoadBalancerSettings

SHEDDERS: Final = (
    Strategy(
        "ThresholdShedder",
        "pulsar_advisor.shedding.threshold_shedder",
        "Relieves brokers whose smoothed usage stands out above the mean (Pulsar's default).",
        ("modular",),
        "2.6",
        frozenset({"broker_usage", "broker_traffic", "broker_counts", "short_term_averages", "recent_unloads"}),
    ),
    Strategy(
        "OverloadShedder",
        "pulsar_advisor.shedding.overload_shedder",
        "Relieves every broker whose usage reaches a fixed threshold.",
        ("modular",),
        "1.18",
        frozenset({"broker_usage", "broker_traffic", "broker_counts", "short_term_averages", "recent_unloads"}),
    ),
    Strategy(
        "UniformLoadShedder",
        "pulsar_advisor.shedding.uniform_load_shedder",
        "Narrows the gap between the busiest and the idlest broker, by messages or by bytes.",
        ("modular",),
        "2.10",
        frozenset({"broker_traffic", "broker_counts", "short_term_averages", "recent_unloads"}),
    ),
    Strategy(
        "AvgShedder",
        "pulsar_advisor.shedding.avg_shedder",
        "Pairs the busiest with the idlest brokers and moves part of what lies between them.",
        ("modular",),
        "3.0",
        frozenset({"broker_usage", "broker_traffic", "short_term_averages", "recent_unloads"}),
    ),
    Strategy(
        "TransferShedder",
        "pulsar_advisor.shedding.transfer_shedder",
        "Moves bundles from the most to the least loaded broker, swapping where one does not fit.",
        ("extensible",),
        "3.0",
        frozenset(
            {
                "broker_usage",
                "broker_traffic",
                "bundle_traffic",
                "bundle_counts",
                "recent_unloads",
                "isolation_policies",
                "anti_affinity",
            }
        ),
        names_destinations=True,
    ),
    Strategy(
        "SimpleLoadManagerImpl",
        "pulsar_advisor.shedding.simple_load_manager_impl",
        "The Simple manager's: one bundle off every overloaded broker if another broker is comfortable.",
        ("simple",),
        "1.18",
        frozenset({"broker_usage", "bundle_traffic", "bundle_counts", "recent_unloads"}),
    ),
    Strategy(
        "MinimalMoveShedder",
        "pulsar_advisor.shedding.minimal_move_shedder",
        "Ours: brings every broker within 1.10 times the mean usage with the fewest moved bundles.",
        ("modular", "extensible"),
        "",
        frozenset(
            {
                "broker_usage",
                "broker_traffic",
                "broker_counts",
                "bundle_traffic",
                "bundle_counts",
                "recent_unloads",
                "isolation_policies",
                "anti_affinity",
            }
        ),
        names_destinations=True,
    ),
)


class Shedder(Protocol):
    """What the module of a shedder offers."""

    @property
    def SETTING_KEYS(self) -> tuple[str, ...]:  # noqa: N802
        """Pulsar's keys that decide what it does."""

    @property
    def Memory(self) -> Callable[[], Any]:  # noqa: N802
        """What it remembers between cycles; without arguments: what a new leader starts with."""

    @property
    def observe(self) -> Callable[[ClusterState, LoadBalancerSettings, int], Any]:
        """Its input from a cluster state, the settings and the time (epoch ms). The same function, the same input."""

    @property
    def decide(self) -> Callable[[Any, LoadBalancerSettings, Any], tuple[SheddingDecision, Any]]:
        """One cycle: (input, settings, memory) to (decision, memory)."""


def load(name: str) -> Shedder:
    """The shedder of this name. Raises `UsageError` for an unknown one."""
    return cast("Shedder", find(SHEDDERS, name, "shedder").load())
