"""The shedders on offer. Adding one means a module, a line here and a page in docs/strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from pulsar_advisor.model.strategy.entry import Strategy, find
from pulsar_advisor.model.strategy.interface import Remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
    from pulsar_advisor.model.strategy.decision import SheddingDecision

SHEDDERS: Final = (
    Strategy(
        name="ThresholdShedder",
        module="pulsar_advisor.shedding.threshold_shedder",
        summary="Relieves brokers whose smoothed usage is well above the mean (the default up to 4.2).",
        load_managers=("modular",),
        first_release="2.6",
    ),
    Strategy(
        name="OverloadShedder",
        module="pulsar_advisor.shedding.overload_shedder",
        summary="Relieves every broker whose usage reaches a fixed threshold.",
        load_managers=("modular",),
        first_release="1.18",
    ),
    Strategy(
        name="UniformLoadShedder",
        module="pulsar_advisor.shedding.uniform_load_shedder",
        summary="Narrows the gap between the busiest and the idlest broker, by messages or by bytes.",
        load_managers=("modular",),
        first_release="2.10",
    ),
    Strategy(
        name="AvgShedder",
        module="pulsar_advisor.shedding.avg_shedder",
        summary="Pairs the busiest with the idlest brokers and moves part of the difference.",
        load_managers=("modular",),
        first_release="3.0.6",
    ),
    Strategy(
        name="TransferShedder",
        module="pulsar_advisor.shedding.transfer_shedder",
        summary="Moves bundles from the most to the least loaded broker, swapping if one does not fit.",
        load_managers=("extensible",),
        first_release="3.0",
        package="extensions.scheduler",
    ),
    Strategy(
        name="SimpleLoadManagerImpl",
        module="pulsar_advisor.shedding.simple_load_manager_impl",
        summary="The Simple manager's: one bundle from every overloaded broker if another broker is comfortable.",
        load_managers=("simple",),
        first_release="1.18",
    ),
    Strategy(
        name="MinimalMoveShedder",
        module="pulsar_advisor.shedding.minimal_move_shedder",
        summary="Ours: brings every broker within 1.10 times the mean usage with the fewest moved bundles.",
        load_managers=("modular", "extensible"),
        first_release="",
    ),
)


class Shedder(Remembering, Protocol):
    """The interface of a shedder's module; what it remembers is a `ShedderMemory`."""

    @property
    def decide(self) -> Callable[[Any, LoadBalancerSettings, Any], tuple[SheddingDecision, Any]]:
        """One cycle: (input, settings, memory) to (decision, memory)."""


def load(name: str) -> Shedder:
    """The shedder with this name. Raises `UsageError` if it is unknown."""
    return cast("Shedder", find(SHEDDERS, name, "shedder").load())
