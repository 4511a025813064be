"""The placement strategies on offer. Adding one means a module, a line here and a page in docs/strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from pulsar_advisor.model.strategy import Strategy, find

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_advisor.model.cluster_state import ClusterState, Indices
    from pulsar_advisor.model.decision import PlacementDecision
    from pulsar_advisor.model.settings import LoadBalancerSettings

PLACEMENTS: Final = (
    Strategy(
        "LeastLongTermMessageRate",
        "pulsar_advisor.placement.least_long_term_message_rate",
        "The broker with the lowest long-term message rate (default of the Modular manager).",
        ("modular",),
        "1.18",
        frozenset({"broker_usage", "long_term_averages"}),
    ),
    Strategy(
        "LeastResourceUsageWithWeight",
        "pulsar_advisor.placement.least_resource_usage_with_weight",
        "A broker whose smoothed usage lies far enough below the candidates' mean.",
        ("modular",),
        "2.11",
        frozenset({"broker_usage", "broker_traffic", "broker_counts"}),
    ),
    Strategy(
        "extensions.LeastResourceUsageWithWeight",
        "pulsar_advisor.placement.extensions_least_resource_usage_with_weight",
        "The Extensible manager's: a broker whose load lies far enough below the mean of the candidates.",
        ("extensible",),
        "3.0",
        frozenset({"broker_usage"}),
    ),
    Strategy(
        "RoundRobinBrokerSelector",
        "pulsar_advisor.placement.round_robin_broker_selector",
        "One broker after the other.",
        ("modular", "extensible"),
        "3.0",
        frozenset(),
    ),
    Strategy(
        "AvgShedder",
        "pulsar_advisor.placement.avg_shedder",
        "The broker that AvgShedder had in mind when it chose the bundle.",
        ("modular",),
        "3.0",
        frozenset({"broker_usage"}),
    ),
    Strategy(
        "SimpleLoadManagerImpl",
        "pulsar_advisor.placement.simple_load_manager_impl",
        "The Simple manager's: brokers ranked by what their bundles are reckoned to need.",
        ("simple",),
        "1.18",
        frozenset({"broker_usage", "bundle_traffic", "bundle_counts"}),
    ),
)


class Placement(Protocol):
    """What the module of a placement strategy offers."""

    @property
    def SETTING_KEYS(self) -> tuple[str, ...]:  # noqa: N802
        """Pulsar's keys that decide what it does."""

    @property
    def Memory(self) -> Callable[[], Any]:  # noqa: N802
        """What it remembers between choices; without arguments: what a new leader starts with."""

    @property
    def observe(self) -> Callable[[ClusterState, LoadBalancerSettings, int], Any]:
        """Its input from a cluster state, the settings and the time (epoch ms). The same function, the same input."""

    @property
    def choose(
        self,
    ) -> Callable[[Any, Indices, int, LoadBalancerSettings, Any], tuple[PlacementDecision, Any]]:
        """One choice: (input, candidate rows in iteration order, bundle row, settings, memory) to (answer, memory)."""


def load(name: str) -> Placement:
    """The placement strategy of this name. Raises `UsageError` for an unknown one."""
    return cast("Placement", find(PLACEMENTS, name, "placement strategy").load())
