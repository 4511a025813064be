"""A choice of a placement strategy read back as names."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance import codes
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.load.load_data import LoadData
from pulsar_advisor.model.strategy.decision import PlacementDecision
from pulsar_advisor.placement import registry


def choose(
    name: str, load: LoadData, of: LoadBalancerSettings, memory: Any = None, row: int = 0, among: tuple[str, ...] = ()
) -> tuple[list[str], dict[str, str], Any]:
    """Eligible brokers, the code of each candidate, the memory after."""
    decision, memory = _decision(name, load, of, memory, row, among)
    answers = {load.brokers.ids[row]: code for row, code in codes(decision.brokers).items()}
    return [load.brokers.ids[index] for index in decision.eligible], answers, memory


def otherwise(name: str, load: LoadData, of: LoadBalancerSettings, memory: Any = None) -> list[str] | None:
    """All brokers that may be chosen, where something that decides can't be known."""
    decision, _ = _decision(name, load, of, memory, 0, ())
    return None if decision.otherwise is None else [load.brokers.ids[index] for index in decision.otherwise]


def _decision(
    name: str, load: LoadData, of: LoadBalancerSettings, memory: Any, row: int, among: tuple[str, ...]
) -> tuple[PlacementDecision, Any]:
    strategy = registry.load(name)
    candidates = np.array([load.brokers.ids.index(broker) for broker in among or load.brokers.ids], dtype=np.int32)
    decision: PlacementDecision
    decision, memory = strategy.choose(load, candidates, row, of, strategy.Memory() if memory is None else memory)
    return decision, memory
