"""The plan kinds on offer. Adding one means a module, a line here, a verb, and a section of docs/plan-kinds.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, cast

from pulsar_advisor.model.strategy.entry import Strategy, find
from pulsar_advisor.model.strategy.interface import Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_advisor.model.plans.goal import Goal
    from pulsar_advisor.planning.kinds.room import Room
    from pulsar_advisor.planning.proposals.proposal import Proposal


@dataclass(frozen=True, kw_only=True)
class Kind(Strategy):
    """One plan kind. In a plan it takes the shedder's place, and names the destinations itself."""

    load_managers: tuple[str, ...] = ("modular", "extensible")
    first_release: str = ""
    about: Literal["cluster", "broker", "brokers", "bundles"]
    """What the operator names: nothing else, one broker, brokers, or bundles, which one broker (`onto`) is to take."""
    options: tuple[Literal["to", "onto", "ceiling"], ...] = ()
    """What else the operator may choose: the usage to reach, the brokers that take bundles, and what they may use."""
    in_order: bool = False
    """Whether the order of its brokers matters."""


KINDS: Final = (
    Kind(
        name="drain",
        module="pulsar_advisor.planning.kinds.drain",
        summary="Moves every bundle off brokers that are to be stopped.",
        about="brokers",
        options=("onto", "ceiling"),
    ),
    Kind(
        name="roll",
        module="pulsar_advisor.planning.kinds.roll",
        summary="Drains brokers one after the other, each for its restart.",
        about="brokers",
        in_order=True,
        options=("ceiling",),
    ),
    Kind(
        name="relieve",
        module="pulsar_advisor.planning.kinds.relieve",
        summary="Brings one broker down to a usage and disturbs the fewest clients.",
        about="broker",
        options=("to", "onto", "ceiling"),
    ),
    Kind(
        name="fill",
        module="pulsar_advisor.planning.kinds.fill",
        summary="Gives new or idle brokers their share of the load.",
        about="brokers",
        options=("to",),
    ),
    Kind(
        name="balance",
        module="pulsar_advisor.planning.kinds.balance",
        summary="Brings every broker within a usage with the fewest bundles moved.",
        about="cluster",
        options=("to", "onto"),
    ),
    Kind(
        name="split",
        module="pulsar_advisor.planning.kinds.split",
        summary="Splits the bundles that keep a usage out of reach, and moves their parts.",
        about="cluster",
        options=("to", "onto"),
    ),
    Kind(
        name="conform",
        module="pulsar_advisor.planning.kinds.conform",
        summary="Moves bundles off brokers that their isolation policy or anti-affinity group forbids.",
        about="cluster",
        options=("ceiling",),
    ),
    Kind(
        name="move",
        module="pulsar_advisor.planning.kinds.move",
        summary="Sends the bundles that it names to one broker.",
        about="bundles",
        options=("onto", "ceiling"),
    ),
)


class PlanKind(Reading, Protocol):
    """The interface of a plan kind's module."""

    @property
    def propose(self) -> Callable[[Goal, Room], Proposal]:
        """The moves that reach the goal, and an answer for every bundle that was considered."""


def plan_kind(name: str) -> Kind:
    """The registry entry of this plan kind. Raises `UsageError` if it is unknown."""
    return cast("Kind", find(KINDS, name, "plan kind"))


def load(name: str) -> PlanKind:
    """The plan kind with this name. Raises `UsageError` if it is unknown."""
    return cast("PlanKind", plan_kind(name).load())
