"""Pulsar's classes as settings name them: `org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pulsar_advisor.model.configuration.kinds import LoadManagerKind

LOAD_MANAGERS: Final[Mapping[LoadManagerKind, str]] = {
    "modular": "ModularLoadManagerImpl",
    "simple": "SimpleLoadManagerImpl",
    "extensible": "ExtensibleLoadManagerImpl",
}
"""Simple name of each load manager's class."""


def simple_name(class_name: str) -> str:
    """The name of a class without its package."""
    return class_name.rpartition(".")[2]


_SHEDS_AND_PLACES: Final = "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
_PLACES_FOR_ITSELF_SINCE: Final = (5, 0, 1)
_OWN_KEY_SINCE: Final = (3, 0, 8)
SHEDDER_REFUSED_SINCE: Final = (4, 0, 0)
"""Before, the Modular manager sheds with OverloadShedder if it can't use the configured class: `ModularLoadManagerImpl.
createLoadSheddingStrategy` (2.11.0, 3.0.7; 4.0.8)."""
_FAILS_SINCE: Final = (4, 2, 0)
_FALLBACK_PLACEMENT: Final = "org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate"


def placement_in_force(shedder_class: str, placement_class: str, behaviour: tuple[int, int, int]) -> str:
    """The class that the Modular manager places with, in a release that decides like `behaviour`.

    From 5.0.1 on, AvgShedder places only if it also sheds; otherwise LeastLongTermMessageRate replaces it.
    Source: `ModularLoadManagerImpl.createLoadBalanceStrategies` (5.0.1; 5.0.0-M1 has no such rule).
    """
    if behaviour >= _PLACES_FOR_ITSELF_SINCE and placement_class == _SHEDS_AND_PLACES != shedder_class:
        return _FALLBACK_PLACEMENT
    return placement_class


def pairing_key(behaviour: tuple[int, int, int]) -> str:
    """The key that must name the shedder if AvgShedder places: before 3.0.8, by mistake, a key of the Simple manager.

    Source: `ModularLoadManagerImpl.initialize` (3.0.7 to 5.0.1), apache/pulsar#23156.
    """
    return "loadBalancerLoadPlacementStrategy" if behaviour >= _OWN_KEY_SINCE else "loadBalancerPlacementStrategy"


def is_unpaired(shedder_class: str, placement_class: str, paired_class: str, behaviour: tuple[int, int, int]) -> bool:
    """Whether, before 5.0.1, the Modular manager doesn't start because AvgShedder would place for another shedder.

    `paired_class` is the value of the `pairing_key`, whose source applies here too.
    """
    return (
        behaviour < _PLACES_FOR_ITSELF_SINCE and placement_class == _SHEDS_AND_PLACES and paired_class != shedder_class
    )


def is_of_extensible(strategy_class: str) -> bool:
    """Whether Pulsar's class is a strategy of the Extensible manager, which no other manager can use."""
    return ".loadbalance.extensions." in strategy_class


def without_modular(behaviour: tuple[int, int, int]) -> str:
    """A clause: what happens to a broker whose Modular manager doesn't start. Source: `LoadManager.create`."""
    fails = behaviour >= _FAILS_SINCE
    return "no broker starts with it" if fails else "a broker that starts with it runs the Simple load manager"
