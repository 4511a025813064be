"""A choice of a placement strategy read back as names."""

from __future__ import annotations

from typing import Any

import numpy as np

from pulsar_advisor.model.decision import PlacementDecision
from pulsar_advisor.model.load_data import LoadData
from pulsar_advisor.model.settings import LoadBalancerSettings
from pulsar_advisor.placement import registry


def choose(
    name: str, load: LoadData, of: LoadBalancerSettings, memory: Any = None, row: int = 0, among: tuple[str, ...] = ()
) -> tuple[list[str], dict[str, str], Any]:
    """Eligible brokers, the code of each candidate, the memory after."""
    strategy = registry.load(name)
    candidates = np.array(
        [load.brokers.ids.index(name) for name in among or load.brokers.ids],
        dtype=np.int32,
    )
    memory = strategy.Memory() if memory is None else memory
    decision: PlacementDecision
    decision, memory = strategy.choose(load, candidates, row, of, memory)
    outcomes = decision.brokers
    codes = {
        load.brokers.ids[index]: outcomes.vocabulary[code].code
        for index, code in zip(outcomes.index, outcomes.code, strict=True)
    }
    return [load.brokers.ids[index] for index in decision.eligible], codes, memory
