"""Which cluster is captured, and who was there when it began: told by the admin API, or by ZooKeeper alone."""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_advisor.admin.read_client import ReadClient, UnreadableAnswer, decode
from pulsar_advisor.capture.documents import LEADER_NODE
from pulsar_advisor.capture.zookeeper import ZooKeeperReader
from pulsar_advisor.model.errors import ClusterUnreachable, UsageError


@dataclass(frozen=True)
class Identity:
    """The cluster by Pulsar's own name, and the ids of its brokers."""

    cluster_name: str
    brokers: tuple[str, ...]
    leader: str | None


def identify(client: ReadClient) -> Identity:
    """Which cluster answers. Raises `ClusterUnreachable` if none does, it wants other credentials, or has no broker."""
    try:
        cluster_name = client.runtime_configuration().get("clusterName", "")
        brokers = client.active_brokers(cluster_name)
    except UnreadableAnswer as error:
        raise ClusterUnreachable(f"{error}: is this the admin URL of a Pulsar broker?") from error
    return Identity(cluster_name, _some(brokers, cluster_name), client.leader())


def identify_in(zookeeper: ZooKeeperReader) -> Identity:
    """Which cluster's metadata these are. Raises `UsageError` if they don't tell, `ClusterUnreachable` as above."""
    names = zookeeper.clusters()
    if len(names) != 1:
        known = f"knows several clusters ({', '.join(names)})" if names else "does not tell the cluster's name"
        raise UsageError(f"ZooKeeper {known}: give --admin-url too")
    brokers = _some(tuple(zookeeper.active_brokers()), names[0])
    try:
        leaders = [decode(node.document, LEADER_NODE).leader for node in zookeeper.leaders()]
    except UnreadableAnswer:
        leaders = []
    return Identity(names[0], brokers, next(iter(leaders), None))


def _some(brokers: tuple[str, ...], cluster_name: str) -> tuple[str, ...]:
    if not brokers:
        raise ClusterUnreachable(f"cluster '{cluster_name}' has no active broker: try again when one is registered")
    return brokers
