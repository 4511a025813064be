"""Which strategies a cluster itself uses.

The Modular manager takes both classes from its settings (`model.configuration.class_names` has its exceptions). The
Simple manager reads neither. The Extensible manager replaces a shedder that wasn't written for it (such as
ThresholdShedder, the default) with TransferShedder, and has a single placement strategy.
Source: `ModularLoadManagerImpl.createLoadSheddingStrategy`, `UnloadScheduler.createNamespaceUnloadStrategy`,
`ExtensibleLoadManagerImpl` (3.0.7 to 5.0.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pulsar_advisor.model.configuration.class_names import placement_in_force, shedder_in_force, simple_name
from pulsar_advisor.model.configuration.kinds import LoadManagerKind
from pulsar_advisor.shedding.registry import SHEDDERS

if TYPE_CHECKING:
    from pulsar_advisor.model.configuration.settings import LoadBalancerSettings

CONFIGURED: Final = "configured"
"""Requests the cluster's own strategy, in place of a strategy's name."""

_EXTENSIBLE_DEFAULT: Final = "TransferShedder"


class Configured(NamedTuple):
    """A cluster's own strategies: registry names, or the simple name of a class that isn't modelled."""

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
        return Configured(
            simple_name(shedder_in_force(shedder_class, behaviour)),
            simple_name(placement_in_force(shedder_class, placement_class, behaviour)),
        )
    shedder = simple_name(shedder_class)
    of_other_managers = {entry.name for entry in SHEDDERS if "extensible" not in entry.load_managers}
    return Configured(
        _EXTENSIBLE_DEFAULT if shedder in of_other_managers else shedder, "extensions.LeastResourceUsageWithWeight"
    )
