"""The split algorithms and deciders on offer. Adding one means a module, a line here and a page in docs/splitting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from pulsar_advisor.model.configuration.kinds import EVERY_MANAGER, LoadManagerKind
from pulsar_advisor.model.strategy.entry import Strategy, find
from pulsar_advisor.model.strategy.interface import Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_advisor.model.cluster.cluster_state import ClusterState
    from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
    from pulsar_advisor.model.strategy.decision import SplittingDecision
    from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption
from pulsar_advisor.model.strategy.memory import SplitMemory

SPLIT_ALGORITHMS: Final = (
    Strategy(
        name="range_equally_divide",
        module="pulsar_advisor.splitting.range_equally_divide",
        summary="In the middle of the bundle's range (Pulsar's default).",
        load_managers=EVERY_MANAGER,
        first_release="2.6",
    ),
    Strategy(
        name="topic_count_equally_divide",
        module="pulsar_advisor.splitting.topic_count_equally_divide",
        summary="So that each side has half of the topics.",
        load_managers=EVERY_MANAGER,
        first_release="2.6",
    ),
    Strategy(
        name="specified_positions_divide",
        module="pulsar_advisor.splitting.specified_positions_divide",
        summary="At given positions.",
        load_managers=EVERY_MANAGER,
        first_release="2.11",
    ),
    Strategy(
        name="flow_or_qps_equally_divide",
        module="pulsar_advisor.splitting.flow_or_qps_equally_divide",
        summary="A child per filled quota of message rate or throughput.",
        load_managers=EVERY_MANAGER,
        first_release="3.0",
    ),
)

SPLIT_DECIDERS: Final = (
    Strategy(
        name="BundleSplitterTask",
        module="pulsar_advisor.splitting.bundle_splitter_task",
        summary="The Modular manager's leader, by long-term averages.",
        load_managers=("modular",),
        first_release="1.18",
    ),
    Strategy(
        name="SimpleLoadManagerImpl",
        module="pulsar_advisor.splitting.simple_load_manager_impl",
        summary="Each broker of the Simple manager, by its last report.",
        load_managers=("simple",),
        first_release="1.18",
    ),
    Strategy(
        name="DefaultNamespaceBundleSplitStrategyImpl",
        module="pulsar_advisor.splitting.default_namespace_bundle_split_strategy",
        summary="Each broker of the Extensible manager, after repeated hits.",
        load_managers=("extensible",),
        first_release="3.0",
    ),
)


class SplitAlgorithm(Reading, Protocol):
    """The interface of a split algorithm's module."""

    @property
    def split_boundary(self) -> Callable[[BundleSplitOption], tuple[int, ...] | None]:
        """Boundaries, ascending, or None if there is nothing to do."""


class SplitDecider(Reading, Protocol):
    """The interface of a decider's module."""

    @property
    def decide(
        self,
    ) -> Callable[[ClusterState, LoadBalancerSettings, SplitMemory], tuple[SplittingDecision, SplitMemory]]:
        """One cycle: what would be split, and what is remembered for the next one."""


def split_algorithm(name: str) -> SplitAlgorithm:
    """The algorithm with this name. Raises `UsageError` with the nearest name if it is unknown."""
    return cast("SplitAlgorithm", find(SPLIT_ALGORITHMS, name, "split algorithm").load())


def algorithm_in_force(settings: LoadBalancerSettings) -> Strategy:
    """The algorithm that a broker uses for an automatic split, which names none: its default.

    A default that its release doesn't have falls back to `range_equally_divide` (Pulsar
    `NamespaceService.getNamespaceBundleSplitAlgorithmByName`).
    """
    known = [strategy for strategy in SPLIT_ALGORITHMS if strategy.is_in(settings.behaviour)]
    wanted = settings.default_namespace_bundle_split_algorithm
    return next((strategy for strategy in known if strategy.name == wanted), SPLIT_ALGORITHMS[0])


def decider_of(load_manager: LoadManagerKind) -> Strategy:
    """The registry entry for the decider of a load manager."""
    return next(strategy for strategy in SPLIT_DECIDERS if load_manager in strategy.load_managers)


def split_decider(load_manager: LoadManagerKind) -> SplitDecider:
    """The decider of a load manager."""
    return cast("SplitDecider", decider_of(load_manager).load())
