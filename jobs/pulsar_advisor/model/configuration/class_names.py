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
