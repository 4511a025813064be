"""The split algorithms and deciders on offer. Adding one means a module, a line here and a page in docs/splitting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from pulsar_advisor.model.strategy import Strategy, find

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_advisor.model.cluster_state import ClusterState
    from pulsar_advisor.model.settings import LoadBalancerSettings
    from pulsar_advisor.splitting.bundle_split_option import BundleSplitOption
    from pulsar_advisor.splitting.decision import SplitMemory, SplittingDecision

_EVERY_MANAGER: Final = ("modular", "simple", "extensible")

SPLIT_ALGORITHMS: Final = (
    Strategy(
        "range_equally_divide",
        "pulsar_advisor.splitting.range_equally_divide",
        "In the middle of the bundle's range (Pulsar's default).",
        _EVERY_MANAGER,
        "2.6",
        frozenset(),
    ),
    Strategy(
        "topic_count_equally_divide",
        "pulsar_advisor.splitting.topic_count_equally_divide",
        "So that half of the topics lie on either side.",
        _EVERY_MANAGER,
        "2.6",
        frozenset({"topic_names"}),
    ),
    Strategy(
        "specified_positions_divide",
        "pulsar_advisor.splitting.specified_positions_divide",
        "At given positions.",
        _EVERY_MANAGER,
        "2.11",
        frozenset({"topic_names"}),
    ),
    Strategy(
        "flow_or_qps_equally_divide",
        "pulsar_advisor.splitting.flow_or_qps_equally_divide",
        "A child per filled quota of message rate or throughput.",
        _EVERY_MANAGER,
        "3.0",
        frozenset({"topic_names", "topic_traffic"}),
    ),
)

SPLIT_DECIDERS: Final = (
    Strategy(
        "BundleSplitterTask",
        "pulsar_advisor.splitting.bundle_splitter_task",
        "The Modular manager's leader, by long-term averages.",
        ("modular",),
        "1.18",
        frozenset({"long_term_averages", "bundle_counts"}),
    ),
    Strategy(
        "SimpleLoadManagerImpl",
        "pulsar_advisor.splitting.simple_load_manager",
        "Each broker of the Simple manager, by its last report.",
        ("simple",),
        "1.18",
        frozenset({"bundle_traffic", "bundle_counts"}),
    ),
    Strategy(
        "DefaultNamespaceBundleSplitStrategyImpl",
        "pulsar_advisor.splitting.default_namespace_bundle_split_strategy",
        "Each broker of the Extensible manager, after repeated hits.",
        ("extensible",),
        "3.0",
        frozenset({"bundle_traffic", "bundle_counts"}),
    ),
)

_FALLBACK: Final = "range_equally_divide"


class SplitAlgorithm(Protocol):
    """What the module of a split algorithm offers."""

    @property
    def SETTING_KEYS(self) -> tuple[str, ...]:  # noqa: N802
        """Pulsar's keys that decide what it does."""

    @property
    def split_boundary(self) -> Callable[[BundleSplitOption], tuple[int, ...] | None]:
        """Boundaries, ascending, or None where there is nothing to do."""


class SplitDecider(Protocol):
    """What the module of a decider offers."""

    @property
    def SETTING_KEYS(self) -> tuple[str, ...]:  # noqa: N802
        """Pulsar's keys that decide what it does."""

    @property
    def decide(
        self,
    ) -> Callable[[ClusterState, LoadBalancerSettings, SplitMemory], tuple[SplittingDecision, SplitMemory]]:
        """One cycle: what would be split, and what is remembered for the next one."""


def split_algorithm(name: str) -> SplitAlgorithm:
    """The algorithm of this name. Raises `UsageError` with the nearest name for an unknown one."""
    return cast("SplitAlgorithm", find(SPLIT_ALGORITHMS, name, "split algorithm").load())


def algorithm_in_force(name: str | None, settings: LoadBalancerSettings) -> str:
    """Name of the algorithm a broker uses for a request that names `name` (None: an automatic split names none).

    A name its release doesn't know falls back to its default, an unknown default to `range_equally_divide` (Pulsar
    `NamespaceService.getNamespaceBundleSplitAlgorithmByName`).
    """
    known = [strategy.name for strategy in SPLIT_ALGORITHMS if _line(strategy.first_release) <= settings.behaviour[:2]]
    wanted = (name, settings.default_namespace_bundle_split_algorithm)
    return next((candidate for candidate in wanted if candidate in known), _FALLBACK)


def decider_of(load_manager: str) -> Strategy:
    """The entry of the decider of a load manager (`modular`, `simple` or `extensible`)."""
    return next(strategy for strategy in SPLIT_DECIDERS if load_manager in strategy.load_managers)


def split_decider(load_manager: str) -> SplitDecider:
    """The decider of a load manager."""
    return cast("SplitDecider", decider_of(load_manager).load())


def _line(release: str) -> tuple[int, int]:
    major, minor = release.split(".")
    return int(major), int(minor)
