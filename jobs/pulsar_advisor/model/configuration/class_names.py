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


PACKAGE: Final = "org.apache.pulsar.broker.loadbalance."
"""Of all load managers and strategies."""

LOAD_MANAGER_CLASSES: Final[Mapping[LoadManagerKind, str]] = {
    kind: f"{PACKAGE}{'extensions' if kind == 'extensible' else 'impl'}.{name}" for kind, name in LOAD_MANAGERS.items()
}

_OF_STANDALONE: Final = f"{PACKAGE}NoopLoadManager"
"""Class of the load manager of a standalone broker."""

_KIND_OF_REPORT: Final[Mapping[str, LoadManagerKind]] = {"LocalBrokerData": "modular", "LoadReport": "simple"}


def load_manager_kind(report_type: str | None, class_name: str | None) -> LoadManagerKind | None:
    """Which manager a broker runs, from its load report's type or else from `loadManagerClassName`; None if unknown.

    Up to 4.0 a broker that can't load that class runs the Simple manager, as with `impl.ExtensibleLoadManagerImpl`,
    which Pulsar's documentation names (3.1, "Enable extensible load manager") but no release has. Source:
    `LoadManager.create` (2.11.0 to 4.0.8).
    """
    if report_type is not None and report_type in _KIND_OF_REPORT:
        return _KIND_OF_REPORT[report_type]
    return next((kind for kind, name in LOAD_MANAGER_CLASSES.items() if name == class_name), None)


def may_exist(class_name: str) -> bool:
    """Whether a class that Pulsar doesn't have may be an operator's own, by its package."""
    return "." in class_name and not class_name.startswith(PACKAGE)


def without_package(value: str) -> str:
    """The value of a setting, for a reader: the simple name of one of Pulsar's load managers or strategies."""
    return simple_name(value) if value.startswith(PACKAGE) else value


_SHEDS_AND_PLACES: Final = f"{PACKAGE}impl.AvgShedder"
MODULAR_SHEDDERS: Final = frozenset(
    f"{PACKAGE}impl.{name}" for name in ("ThresholdShedder", "OverloadShedder", "UniformLoadShedder", "AvgShedder")
)
MODULAR_PLACEMENTS: Final = frozenset(
    f"{PACKAGE}impl.{name}"
    for name in ("LeastLongTermMessageRate", "LeastResourceUsageWithWeight", "RoundRobinBrokerSelector", "AvgShedder")
)
_PLACES_FOR_ITSELF_SINCE: Final = (5, 0, 1)
_OWN_KEY_SINCE: Final = (3, 0, 8)
_FAILS_SINCE: Final = (4, 2, 0)
_FALLBACK_PLACEMENT: Final = f"{PACKAGE}impl.LeastLongTermMessageRate"


def replaces_shedder(behaviour: tuple[int, int, int]) -> bool:
    """Whether the Modular manager sheds with OverloadShedder in place of a class that it can't use.

    From 4.0 on it doesn't start. Source: `ModularLoadManagerImpl.createLoadSheddingStrategy` (2.11.0, 3.0.7; 4.0.8).
    """
    return behaviour < (4, 0, 0)


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


def why_modular_does_not_start(
    shedder_class: str, placement_class: str, paired_class: str, behaviour: tuple[int, int, int]
) -> str | None:
    """Why the Modular manager doesn't start with these classes, and what becomes of the broker; None if it starts.

    It can use none of Pulsar's classes but its own strategies, and before 5.0.1 AvgShedder places for no other shedder.
    `paired_class` is the value of `pairing_key`. Source: that of `pairing_key`; `LoadManager.create` (4.0.8; 4.2.4).
    """
    chosen = [(placement_class, MODULAR_PLACEMENTS)]
    if not replaces_shedder(behaviour):
        chosen.insert(0, (shedder_class, MODULAR_SHEDDERS))
    foreign = [one for one, own in chosen if one and not may_exist(one) and one not in own]
    places_for_other = placement_class == _SHEDS_AND_PLACES and paired_class != shedder_class
    if foreign and _is_of_extensible(foreign[0]):
        why = f"{simple_name(foreign[0])} is a strategy of the Extensible load manager"
    elif foreign:
        why = f"{foreign[0]} is none of the Modular load manager's strategies for that"
    elif behaviour < _PLACES_FOR_ITSELF_SINCE and places_for_other:
        names = f"the shedder, {simple_name(shedder_class)}, but it is {simple_name(paired_class)}"
        why = f"{simple_name(placement_class)} places only if {pairing_key(behaviour)} names {names}"
    else:
        return None
    return f"{why}: {_consequence(behaviour)}"


def why_manager_does_not_start(class_name: str, behaviour: tuple[int, int, int]) -> str | None:
    """Why no broker runs the load manager of this class, and what becomes of it; None if it may exist.

    Source: that of `load_manager_kind`; `LoadManager.create` (4.2.4).
    """
    if class_name in ("", _OF_STANDALONE, *LOAD_MANAGER_CLASSES.values()) or may_exist(class_name):
        return None
    meant = [one for one in LOAD_MANAGER_CLASSES.values() if simple_name(one) == simple_name(class_name)]
    exists = "".join(f", {one} is" for one in meant)
    return f"{class_name} is no class of Pulsar's{exists}: {_consequence(behaviour)}"


def _consequence(behaviour: tuple[int, int, int]) -> str:
    if behaviour >= _FAILS_SINCE:
        return "no broker starts with it"
    return "a broker that starts with it runs the Simple load manager"


def _is_of_extensible(strategy_class: str) -> bool:
    return ".loadbalance.extensions." in strategy_class
