"""The verbs of a rolling restart: `roll` makes its plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from pulsar_advisor.cli.goals import Broker, Ceiling, Making
from pulsar_advisor.cli.output import log, say_lines
from pulsar_advisor.cli.rendering import roll_lines
from pulsar_advisor.model.bounds import ratio
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.text.some_of import count, some_of

Spare = Annotated[
    tuple[str, ...],
    Parameter(help="Broker that takes bundles first and isn't restarted, such as a new one; repeatable."),
]


def plan(*broker: Broker, spare: Spare = (), ceiling: Ceiling = None, making: Making = Making()) -> None:
    """Make the plan of a rolling restart, and show its order: every broker is drained before it is restarted.

    Without brokers: all, in the order that moves each bundle least often. The leader comes last. The plan's steps are
    the first broker's; each later turn is planned anew, on fresh figures, within what was approved.
    """
    from pulsar_advisor.execution.throttle import DEFAULT_THROTTLE
    from pulsar_advisor.stages.roll_order import run

    root = making.place.open()
    snapshot = root.resolve(making.snapshot)
    highest = None if ceiling is None else ratio(ceiling)
    order = run(root, snapshot, broker, spare, highest)
    if order.at_rest:
        log(
            f"{some_of(order.at_rest)}: nothing to move; restart {count(len(order.at_rest), 'such broker')} before the "
            "roll begins, which leaves them out"
        )
    if not making.json:
        say_lines(roll_lines(order, DEFAULT_THROTTLE))
    replace(making, snapshot=snapshot).plan(Goal(ROLL, order.brokers, None, highest))
