"""What one shedder, one placement strategy and the split deciders want done, before it becomes a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pulsar_advisor.model.decision import Split
from pulsar_advisor.model.outcomes import Outcomes


@dataclass(frozen=True)
class Move:
    """A bundle to unload; rows of the cluster state. `destination` is NOBODY where none can be given or held."""

    bundle: int
    source: int
    destination: int
    reason: str
    near_tie: bool
    """Whether the deciding inequality was decided by a near-ties."""


Role = Literal["shedder", "load manager", "placement", "splitting"]
"""As what a class answers: `load manager` is what wraps the shedder; AvgShedder and others have more than one role."""


@dataclass(frozen=True, eq=False)
class Answers:
    """A strategy's outcomes under its own name."""

    strategy: str
    role: Role
    outcomes: Outcomes
    about: str = ""
    """For placement: name of the bundle the brokers were candidates for."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """What one shedder and one placement strategy want done, in Pulsar's order, and every answer behind it."""

    shedder: str
    placement: str
    moves: tuple[Move, ...]
    splits: tuple[Split, ...]
    answers: tuple[Answers, ...]
    acts_in_cycle: int | None
    why_nothing: str | None
    figures: Mapping[str, object] = field(default_factory=dict)
    """What the shedder computed on the way, by name."""
