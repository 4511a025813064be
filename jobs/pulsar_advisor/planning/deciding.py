"""The strategies behind a plan: a shedder and a placement strategy, or a plan kind alone."""

from __future__ import annotations

from pulsar_advisor.model.strategy import Strategy, find
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.kinds.registry import KINDS
from pulsar_advisor.shedding.registry import SHEDDERS


def deciding(shedder: str, placement: str) -> tuple[Strategy, ...]:
    """The registry entries of these names; `placement` is empty for a plan kind. Raises `UsageError` for others."""
    first = find((*SHEDDERS, *KINDS), shedder, "shedder")
    return (first, find(PLACEMENTS, placement, "placement strategy")) if placement else (first,)
