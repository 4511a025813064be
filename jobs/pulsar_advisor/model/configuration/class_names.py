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
_FALLBACK_PLACEMENT: Final = "org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate"


def placement_in_force(shedder_class: str, placement_class: str, behaviour: tuple[int, int, int]) -> str:
    """The class that places under the Modular manager of a release that decides as `behaviour`.

    From 5.0.1 on, a class that sheds too places for itself only; elsewhere LeastLongTermMessageRate takes its place.
    Source: `ModularLoadManagerImpl.createLoadBalanceStrategies` (5.0.1; 5.0.0-M1 has no such rule).
    """
    if behaviour >= (5, 0, 1) and placement_class == _SHEDS_AND_PLACES != shedder_class:
        return _FALLBACK_PLACEMENT
    return placement_class
