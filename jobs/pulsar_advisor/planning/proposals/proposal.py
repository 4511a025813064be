"""What one shedder, one placement strategy and the split deciders propose, before it becomes a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pulsar_advisor.model.strategy.decision import Figure, Split
from pulsar_advisor.model.strategy.outcomes import Outcomes


@dataclass(frozen=True)
class Move:
    """A bundle to unload; rows of the cluster state. `destination` is NO_ROW if none can be set or kept."""

    bundle: int
    source: int
    destination: int
    reason: str
    near_tie: bool
    """Whether the deciding inequality was a near tie."""
    margin: float = math.inf
    """How far apart its two sides are, relative to the greater; infinite where nothing was compared."""
    awaits: tuple[str, ...] = ()
    """Ids of brokers that must publish their load again before the next cycle, or the bundle stays."""
    possible: tuple[int, ...] = ()
    """Rows of all brokers where Pulsar may put the bundle: it draws among them, or decides by figures unknown here."""
    obstacle: str | None = None
    """Why it can't be carried out, if whoever proposes it knows; it stays in the plan, marked."""


Role = Literal["shedder", "load manager", "placement", "splitting"]
"""The role in which a class answers. `load manager` wraps the shedder; AvgShedder and others have several roles."""


@dataclass(frozen=True, eq=False)
class Answers:
    """A strategy's outcomes under its own name."""

    strategy: str
    role: Role
    outcomes: Outcomes
    about: str = ""
    """For placement: name of the bundle for which the brokers were candidates."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """What one shedder and one placement strategy propose, in Pulsar's order, and every answer behind it.

    A plan kind takes the shedder's place; then there is no placement strategy, and its name is empty.
    """

    shedder: str
    placement: str
    moves: tuple[Move, ...] = ()
    splits: tuple[Split, ...] = ()
    answers: tuple[Answers, ...] = ()
    acts_in_cycle: int | None = None
    why_nothing: str | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """Intermediate results of the shedder, by name."""
    caveats: tuple[str, ...] = ()
    """A sentence each: what of a goal isn't reached, or what is no longer safe afterwards."""
