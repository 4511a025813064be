"""The placement strategies on offer. Adding one means a module, a line here and a page in docs/strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from pulsar_advisor.model.strategy.entry import Strategy, find
from pulsar_advisor.model.strategy.interface import Remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_advisor.model.cluster.cluster_state import Indices
    from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
    from pulsar_advisor.model.strategy.decision import PlacementDecision

PLACEMENTS: Final = (
    Strategy(
        name="LeastLongTermMessageRate",
        module="pulsar_advisor.placement.least_long_term_message_rate",
        summary="The broker with the lowest long-term message rate (the Modular manager's default up to 4.2).",
        load_managers=("modular",),
        first_release="1.18",
    ),
    Strategy(
        name="LeastResourceUsageWithWeight",
        module="pulsar_advisor.placement.least_resource_usage_with_weight",
        summary="A broker whose smoothed usage is far enough below the candidates' mean.",
        load_managers=("modular",),
        first_release="2.11",
    ),
    Strategy(
        name="extensions.LeastResourceUsageWithWeight",
        module="pulsar_advisor.placement.extensions_least_resource_usage_with_weight",
        summary="The Extensible manager's: a broker whose load is far enough below the candidates' mean.",
        load_managers=("extensible",),
        first_release="3.0",
        package="extensions.strategy",
    ),
    Strategy(
        name="RoundRobinBrokerSelector",
        module="pulsar_advisor.placement.round_robin_broker_selector",
        summary="Each broker in turn.",
        load_managers=("modular", "extensible"),
        first_release="3.0",
    ),
    Strategy(
        name="AvgShedder",
        module="pulsar_advisor.placement.avg_shedder",
        summary="The broker that AvgShedder intended when it chose the bundle.",
        load_managers=("modular",),
        first_release="3.0.6",
    ),
    Strategy(
        name="SimpleLoadManagerImpl",
        module="pulsar_advisor.placement.simple_load_manager_impl",
        summary="The Simple manager's: brokers ranked by the estimated needs of their bundles.",
        load_managers=("simple",),
        first_release="1.18",
    ),
)


class Placement(Remembering, Protocol):
    """The interface of a placement strategy's module."""

    @property
    def choose(self) -> Callable[[Any, Indices, int, LoadBalancerSettings, Any], tuple[PlacementDecision, Any]]:
        """One choice: (input, candidate rows in iteration order, bundle row, settings, memory) to (answer, memory)."""


def load(name: str) -> Placement:
    """The placement strategy with this name. Raises `UsageError` if it is unknown."""
    return cast("Placement", find(PLACEMENTS, name, "placement strategy").load())
