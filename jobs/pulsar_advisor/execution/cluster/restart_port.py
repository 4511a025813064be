"""What a roll reads about restarting brokers, in addition to what the executor reads.

Sources: `GET …/brokers/leaderBroker`, `…/brokers/health`, `…/broker-stats/load-report`; a Modular broker's node under
`/loadbalance/brokers` (`LocalBrokerData`), the leader's only source about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from pulsar_advisor.admin.decoding import decode
from pulsar_advisor.admin.metadata_store import Node
from pulsar_advisor.execution.cluster.cluster_port import ClusterPort


class RestartPort(ClusterPort, Protocol):
    """One cluster whose brokers are restarted."""

    def why_unhealthy(self, broker: str) -> str | None:
        """What a broker's own health check says, asked at its own address; None if it is healthy."""

    def started_at_ms(self, broker: str) -> int | None:
        """When a broker's process started, by its own clock; None if it doesn't say."""

    def publishes_within_s(self) -> float:
        """The longest time until a broker publishes its load again, even without a change."""


@dataclass(frozen=True)
class Published:
    """What the leader knows of a broker."""

    bundles: frozenset[str]
    started_at_ms: int | None


LeadersView = Callable[[], Mapping[str, Published] | None]
"""What the leader knows of each broker, by id. None if that can't be read: without access to the metadata store, or
under Extensible, whose brokers publish no list of bundles."""


class _Report(msgspec.Struct, rename="camel"):
    bundles: list[str] = msgspec.field(default_factory=list)
    start_timestamp: int = 0


_REPORT: Final = msgspec.json.Decoder(_Report)


def published(nodes: Iterable[tuple[str, Node]]) -> dict[str, Published]:
    """What Modular brokers published, from (broker id, node)."""
    reports = {broker: decode(node.document, _REPORT) for broker, node in nodes}
    return {
        broker: Published(frozenset(report.bundles), report.start_timestamp or None)
        for broker, report in reports.items()
    }
