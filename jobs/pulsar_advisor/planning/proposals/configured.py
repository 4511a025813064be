"""Which strategies a cluster itself uses.

The Modular manager takes both classes from its settings (`model.configuration.class_names` has its exceptions); before
4.0, OverloadShedder replaces a shedder that it can't use. The Simple manager reads neither. The Extensible manager
replaces a shedder that it can't use (such as ThresholdShedder, the default) with TransferShedder, and has a single
placement strategy. None can use a misspelt class, or one that its release doesn't have.
Source: `ModularLoadManagerImpl.createLoadSheddingStrategy`, `UnloadScheduler.createNamespaceUnloadStrategy`,
`ExtensibleLoadManagerImpl` (3.0.7 to 5.0.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsar_advisor.model.configuration.class_names import may_exist, placement_in_force, replaces_shedder, simple_name
from pulsar_advisor.model.configuration.kinds import LoadManagerKind
from pulsar_advisor.model.strategy.entry import Strategy
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.shedding.registry import SHEDDERS

if TYPE_CHECKING:
    from pulsar_advisor.model.configuration.settings import LoadBalancerSettings

CONFIGURED: Final = "configured"
"""Requests the cluster's own strategy, in place of a strategy's name."""


class Configured(NamedTuple):
    """A cluster's own strategies: registry names, or the name of a class that isn't modelled."""

    shedder: str
    placement: str


def configured_of(load_manager: LoadManagerKind, settings: LoadBalancerSettings) -> Configured:
    """The strategies of a cluster with this load manager and these settings."""
    return configured_strategies(
        load_manager,
        settings.load_balancer_load_shedding_strategy,
        settings.load_balancer_load_placement_strategy,
        settings.behaviour,
    )


def configured_strategies(
    load_manager: LoadManagerKind, shedder_class: str, placement_class: str, behaviour: tuple[int, int, int]
) -> Configured:
    """The strategies of a cluster with this load manager, of a release that decides as `behaviour`.

    The classes are those of `loadBalancerLoadSheddingStrategy` and `loadBalancerLoadPlacementStrategy`.
    """
    if load_manager == "simple":
        return Configured("SimpleLoadManagerImpl", "SimpleLoadManagerImpl")
    if load_manager == "modular":
        shedder = shedder_class
        if shedder_class and replaces_shedder(behaviour):
            shedder = _usable(shedder_class, "modular", behaviour) or "OverloadShedder"
        placement = placement_in_force(shedder_class, placement_class, behaviour)
        return Configured(_name(shedder, SHEDDERS), _name(placement, PLACEMENTS))
    shedder = _usable(shedder_class, "extensible", behaviour) or "TransferShedder"
    return Configured(_name(shedder, SHEDDERS), "extensions.LeastResourceUsageWithWeight")


def _name(class_name: str, strategies: Sequence[Strategy]) -> str:
    """A class by its simple name, unless it is an operator's that has the name of one of Pulsar's."""
    is_namesake = may_exist(class_name) and simple_name(class_name) in {one.name for one in strategies}
    return class_name if is_namesake else simple_name(class_name)


def _usable(shedder_class: str, load_manager: LoadManagerKind, behaviour: tuple[int, int, int]) -> str | None:
    """The class, if a load manager can shed with it, as far as is known; else None."""
    shipped = (one.java_class for one in SHEDDERS if load_manager in one.load_managers and one.is_in(behaviour))
    return shedder_class if may_exist(shedder_class) or shedder_class in shipped else None
