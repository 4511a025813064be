"""The verbs for what an operator wants of a cluster: one for each plan kind, and two that answer without a plan."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from pulsar_advisor.cli.options import Json, SnapshotId
from pulsar_advisor.cli.output import print_json, say_lines
from pulsar_advisor.cli.places import Place
from pulsar_advisor.cli.rendering import restart_lines, scale_lines
from pulsar_advisor.cli.stages import Making
from pulsar_advisor.model.bounds import ratio
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.storage.root import LATEST

Broker = Annotated[str, Parameter(help="Broker id, or the beginning of its host name up to a dot.")]
Onto = Annotated[
    tuple[str, ...],
    Parameter(name="--onto", help="Broker that may take bundles; repeatable. By default every broker may."),
]
Ceiling = Annotated[
    str | None,
    Parameter(help="No destination may end above this usage, for example 70%; by default the overload threshold."),
]

Highest = Annotated[
    str | None, Parameter(help="Usage that no broker is to exceed; by default 1.10 times the mean usage.")
]


def drain(*broker: Broker, ceiling: Ceiling = None, onto: Onto = (), making: Making = Making()) -> None:
    """Make a plan that moves every bundle off brokers that are to be stopped, and say what doesn't fit elsewhere."""
    making.plan(Goal("drain", broker, None, _ratio(ceiling), onto))


def relieve(
    broker: Broker,
    /,
    *,
    to: Annotated[
        str | None, Parameter(help="Usage to bring it down to; by default 1.10 times the mean usage.")
    ] = None,
    ceiling: Ceiling = None,
    onto: Onto = (),
    making: Making = Making(),
) -> None:
    """Make a plan that brings one broker down to a usage and disturbs the fewest clients."""
    making.plan(Goal("relieve", (broker,), _ratio(to), _ratio(ceiling), onto))


def fill(
    *broker: Broker,
    to: Annotated[str | None, Parameter(help="Usage to fill them up to; by default the mean of all brokers.")] = None,
    making: Making = Making(),
) -> None:
    """Make a plan that gives new or idle brokers their share of the load."""
    making.plan(Goal("fill", broker, _ratio(to)))


def balance(
    *,
    to: Highest = None,
    onto: Onto = (),
    making: Making = Making(),
) -> None:
    """Make a plan that brings every broker within a usage with the fewest bundles moved."""
    making.plan(Goal("balance", (), _ratio(to), onto=onto))


def split(
    *,
    to: Highest = None,
    onto: Onto = (),
    making: Making = Making(),
) -> None:
    """Make a plan that splits the bundles that keep a usage out of reach, and moves their parts."""
    making.plan(Goal("split", (), _ratio(to), onto=onto))


def conform(*, ceiling: Ceiling = None, making: Making = Making()) -> None:
    """Make a plan that moves bundles off brokers that their isolation policy or anti-affinity group forbids."""
    making.plan(Goal("conform", ceiling_ratio=_ratio(ceiling)))


def move(
    *bundle: Annotated[str, Parameter(help="Full name of a bundle, or a topic in it.")],
    onto: Annotated[str, Parameter(help="Broker that takes them, named as for drain.")],
    ceiling: Ceiling = None,
    making: Making = Making(),
) -> None:
    """Make a plan that sends bundles to one broker, and say which may not go there."""
    making.plan(Goal("move", (), None, _ratio(ceiling), (onto,), bundle))


def restart_order(
    *, place: Place = Place(), snapshot: SnapshotId = LATEST, ceiling: Ceiling = None, json: Json = False
) -> None:
    """Say in which order to restart all brokers so that each bundle moves least often; makes no plan."""
    from pulsar_advisor.stages.restart_order import run

    ceiling_ratio = _ratio(ceiling)
    order = run(place.at(snapshot), ceiling_ratio)
    print_json(order) if json else say_lines(restart_lines(order, ceiling_ratio))


def scale(
    *,
    to: Annotated[str, Parameter(help="Usage that the brokers are to have on average.")] = "60%",
    place: Place = Place(),
    snapshot: SnapshotId = LATEST,
    json: Json = False,
) -> None:
    """Say how many brokers this load needs, and what fewer or more would look like; makes no plan."""
    from pulsar_advisor.stages.scale import run

    found = run(place.at(snapshot), ratio(to))
    print_json(found) if json else say_lines(scale_lines(found))


def _ratio(text: str | None) -> float | None:
    return None if text is None else ratio(text)
