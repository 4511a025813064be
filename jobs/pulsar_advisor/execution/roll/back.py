"""Whether a broker is back after its restart, according to itself, the registry and the leader."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pulsar_advisor.execution.cluster.restart_port import LeadersView, RestartPort
from pulsar_advisor.execution.ledger.rolls import RollTurn
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.text.reader import reader
from pulsar_advisor.model.text.some_of import some_of


@dataclass(frozen=True)
class Drained:
    """What is known of a broker that a turn has drained."""

    turn: RollTurn
    destinations: Mapping[str, str]
    """Broker ids by bundle: where the turn moved each bundle."""
    since_s: float
    """Seconds since the turn's last move."""


def not_yet(drained: Drained, cluster: RestartPort, leaders_view: LeadersView) -> str | None:
    """The first thing that the next turn has to wait for; None if the broker is back and the leader is up to date."""
    try:
        return next(_not_yet(drained, cluster, leaders_view), None)
    except ClusterUnreachable as error:  # as during a restart
        return str(error)


def _not_yet(drained: Drained, cluster: RestartPort, leaders_view: LeadersView) -> Iterator[str]:
    broker, before_ms = drained.turn.broker, drained.turn.started_at_ms
    if broker not in cluster.active_brokers():
        yield f"{broker} is not among the active brokers (if it has another name now, {reader().end_roll})"
    if (why := cluster.why_unhealthy(broker)) is not None:
        yield f"{broker} is not healthy: {why}"
    now_ms = cluster.started_at_ms(broker)
    if before_ms is not None and now_ms == before_ms:
        yield f"{broker} has not been restarted: its process is still the same"
    if (known := leaders_view()) is None:
        left_s = cluster.publishes_within_s() - drained.since_s
        if left_s > 0:
            yield (
                "the reports that the leader has can't be read here (only in a Modular cluster's ZooKeeper), so "
                f"brokers get {math.ceil(left_s / 60)} more min to publish theirs"
            )
        return
    if broker not in known or known[broker].started_at_ms != now_ms:
        yield f"the leader has no report of {broker} since its restart"
    for receiver in sorted(set(drained.destinations.values())):
        moved = {bundle for bundle, to in drained.destinations.items() if to == receiver}
        unknown = moved & cluster.owned_bundles(receiver) - (known[receiver].bundles if receiver in known else set())
        if unknown:
            yield f"the leader has no report of {receiver} yet that lists {some_of(unknown)}"
