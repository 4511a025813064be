"""Scores of simulations, and sentences without the spaces that don't break."""

from __future__ import annotations

from typing import Any

import documents
from pulsar_advisor.documents.simulation import NotSimulated, SimulatedScore, Strategies

OWN = Strategies(shedder="ThresholdShedder", placement="LeastLongTermMessageRate")


def score(shedder: str = OWN.shedder, placement: str = OWN.placement, **given: Any) -> SimulatedScore:
    return SimulatedScore(**documents.ending(**{"shedder": shedder, "placement": placement, "what_if": "", **given}))


def not_simulated(shedder: str, error: str) -> NotSimulated:
    return NotSimulated(shedder=shedder, placement=OWN.placement, what_if="", error=error)


def plain(text: str | None) -> str:
    return (text or "").replace("\N{NO-BREAK SPACE}", " ")
