"""The strategies behind a plan: a shedder and a placement strategy, a plan kind, or what decides about splits."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.model.strategy.entry import Strategy, find
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.kinds.registry import KINDS
from pulsar_advisor.planning.proposals.fitness import unload_refusals
from pulsar_advisor.planning.proposals.proposal import Role
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.splitting.registry import SPLIT_DECIDERS

_ROLES: Final[tuple[Role, ...]] = ("shedder", "placement")


def deciding(shedder: str, placement: str) -> tuple[Strategy, ...]:
    """The registry entries of these names; a plan kind has no placement strategy, nor have splits whose children stay.

    Raises `UsageError` for unknown names.
    """
    # SimpleLoadManagerImpl both sheds and splits: of entries with one name, the last counts.
    first = find((*SPLIT_DECIDERS, *KINDS, *SHEDDERS), shedder, "shedder")
    return (first, find(PLACEMENTS, placement, "placement strategy")) if placement else (first,)


def require_inputs(shedder: str, placement: str, state: ClusterState) -> None:
    """Raise `DataNotFit` if the state lacks an input that one of them reads."""
    for strategy, role in zip(deciding(shedder, placement), _ROLES, strict=False):
        if lacks := unload_refusals(strategy, role, state):
            raise DataNotFit(lacks[0].sentence)
