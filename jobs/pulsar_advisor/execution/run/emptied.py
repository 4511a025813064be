"""Checks on the cluster whether drained brokers still have bundles that clients use.

A bundle that a broker got just before the plan was made, or since, isn't in the plan. Its topics are reported only with
the next statistics pass, so the check waits for that pass if the bundle may have loaded topics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pulsar_advisor.execution.clock import Clock
from pulsar_advisor.execution.cluster.cluster_port import LOOK_AGAIN_S, ClusterPort
from pulsar_advisor.execution.run.options import Interruption
from pulsar_advisor.model.cluster.namespaces import is_pulsars_own
from pulsar_advisor.model.text.some_of import some_of

POLL_S: Final = 5.0


@dataclass(frozen=True)
class Left:
    """What is left on drained brokers."""

    used: tuple[str, ...] = ()
    """Full names of bundles with loaded topics."""
    interrupted: str | None = None
    """Why the check ended before the brokers had reported every topic they may have loaded."""

    @property
    def sentence(self) -> str:
        """Why the brokers may not be stopped; empty if nothing is left."""
        if self.used:
            return f"clients use {some_of(self.used)}, which came meanwhile: plan and apply once more"
        return f"what came meanwhile isn't reported yet: {self.interrupted}" if self.interrupted else ""


def left_on(cluster: ClusterPort, brokers: Iterable[str], clock: Clock, interruption: Interruption) -> Left:
    """The bundles that clients use there, once all are reported; Pulsar's own namespaces don't count.

    It takes two looks to find none: somebody stops those brokers then.
    """
    brokers, seen, deadline_s = tuple(brokers), set[str](), clock.monotonic_s()
    is_empty = False
    while True:
        owned = {name for broker in brokers for name in cluster.owned_bundles(broker)}
        owned = {name for name in owned if not is_pulsars_own(name.rpartition("/")[0])}
        if not owned <= seen:
            seen |= owned
            deadline_s = clock.monotonic_s() + cluster.reports_within_s()
        if used := owned & {name for broker in brokers for name in cluster.reported_bundles(broker)}:
            return Left(used=tuple(sorted(used)))
        parts = [name.rpartition("/") for name in sorted(owned)]
        may_be_used = any(cluster.may_have_topics(namespace, text) for namespace, _, text in parts)
        was_empty, is_empty = is_empty, not may_be_used or clock.monotonic_s() >= deadline_s
        reason = interruption()
        if is_empty and (was_empty or reason):
            return Left()
        if reason:
            return Left(interrupted=reason)
        clock.sleep(LOOK_AGAIN_S if is_empty else POLL_S)
