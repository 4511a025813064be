"""Where a recorded cluster is struck: its busiest broker, and what belongs to that broker's busiest bundle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corruptions.documents import ADMIN, CLUSTER, Documents

Path = tuple[Any, ...]


class Victims:
    """The places, as keys from an attribute of `Documents` down."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        traffic = {broker: sum(_bundles(documents, broker).values()) for broker in documents.brokers}
        self.broker = max(traffic, key=lambda broker: traffic[broker])
        self.coldest = min(traffic, key=lambda broker: traffic[broker])
        figures = _bundles(documents, self.broker)
        self.bundle = max(figures, key=lambda bundle: figures[bundle])
        self.namespace, _, self.range = self.bundle.rpartition("/")
        self.leader_broker = documents.leader
        self.report: Path = ("of_brokers", self.broker, f"{ADMIN}/broker-stats/load-report")
        self.topics: Path = ("of_brokers", self.broker, f"{ADMIN}/broker-stats/topics")
        loaded = documents.topics(self.broker)[self.namespace][self.range]["persistent"]
        self.topic_name = max(loaded, key=lambda name: loaded[name]["msgRateIn"])
        self.topic: Path = (*self.topics, self.namespace, self.range, "persistent", self.topic_name)
        self.metrics: Path = ("of_brokers", self.broker, f"{ADMIN}/broker-stats/metrics")
        self.owned: Path = ("of_brokers", self.broker, f"{ADMIN}/brokers/{CLUSTER}/{self.broker}/ownedNamespaces")
        self.policies: Path = ("of_any", f"{ADMIN}/namespaces/{self.namespace}")
        self.isolation_policy: Path = ("of_any", f"{ADMIN}/clusters/{CLUSTER}/namespaceIsolationPolicies", "apart")
        self.leader: Path = ("of_any", f"{ADMIN}/brokers/leaderBroker")
        self.local_policies: Path = ("nodes", f"/admin/local-policies/{self.namespace}")
        self.bundle_data: Path = ("nodes", f"/loadbalance/bundle-data/{self.bundle}")
        self.broker_time_average: Path = ("nodes", f"/loadbalance/broker-time-average/{self.broker}")
        self.quota: Path = ("nodes", "/loadbalance/resource-quota/namespace/retail/orders/0x00000000_0x40000000")
        self.ownership: Path = ("nodes", f"/namespace/{self.bundle}")
        self.leader_node: Path = ("nodes", "/loadbalance/leader")
        self.published_report: Path = ("nodes", f"/loadbalance/brokers/{self.broker}")

    def entry_of(self, entries: Mapping[str, Any]) -> str:
        """The entry of a map by names that is struck: the busiest bundle's, if it has one."""
        return self.bundle if self.bundle in entries else next(iter(entries))


def _bundles(documents: Documents, broker: str) -> dict[str, float]:
    """Messages a second, in and out, by bundle, as the topics say it."""
    return {
        f"{namespace}/{range_}": sum(
            stats["msgRateIn"] + stats["msgRateOut"] for topics in domains.values() for stats in topics.values()
        )
        for namespace, ranges in documents.topics(broker).items()
        for range_, domains in ranges.items()
    }
