"""Reads what Pulsar keeps in its metadata store: ownership, boundaries, the leader's averages, topic names.

The store is ZooKeeper or Oxia; paths and contents are the same in both.
Source of paths and contents: Pulsar `MetadataStoreCacheLoader`, `OwnershipCache`, `ModularLoadManagerImpl`,
`BaseResources`, `ManagedLedgerFactoryImpl` (2.10 to 5.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Final, Protocol
from urllib.parse import unquote_plus

from pulsar_advisor.admin.decoding import Document
from pulsar_advisor.admin.request_budget import RequestBudget
from pulsar_advisor.model.errors import ClusterUnreachable

PATHS_AT_A_TIME: Final = 64
"""How many nodes are asked for before the first answer is taken."""

_RANGE = re.compile(r"0x[0-9a-f]{8}_0x[0-9a-f]{8}")


@dataclass(frozen=True)
class Node:
    """One node: its content, when it was made and last written, and how often it was written since it was made."""

    path: str
    data: bytes
    created_at_ms: int
    modified_at_ms: int
    version: int
    store: str = "zookeeper"

    @property
    def document(self) -> Document:
        """The content, ready to decode."""
        return Document(f"{self.store}:{self.path}", self.data)


class MetadataStore(Protocol):
    """One session with a store. Nodes that don't exist, or vanish before they are read, are skipped or childless.

    Both methods answer in the order of the paths, ask for at most `PATHS_AT_A_TIME` ahead, and raise
    `ClusterUnreachable` when the session is lost or a read takes too long.
    """

    kind: str
    """The product's name."""

    def children(self, paths: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        """(path, names of its children, sorted)."""
        ...

    def nodes(self, paths: Iterable[str]) -> Iterator[Node]:
        """What is kept at each path."""
        ...


def segment_load_path(topic: str, segment: int) -> str:
    """The path of a segment's load; `topic`: the path of its scalable topic, `segment`: its id."""
    return f"{topic}/segments/{segment}/load"


def in_batches(paths: Iterable[str]) -> Iterator[list[str]]:
    """The paths, in batches that are requested together."""
    rest = iter(paths)
    while some := list(islice(rest, PATHS_AT_A_TIME)):
        yield some


class StoreConnection(Protocol):
    """Where a store is, and how to authenticate to it."""

    kind: ClassVar[str]
    """The product's name."""

    @property
    def name(self) -> str:
        """The store as named in messages, such as `ZooKeeper zk1:2181`."""
        ...

    def session(self) -> AbstractContextManager[MetadataStore]:
        """A session that ends with the block.

        Raises `ClusterUnreachable` if there is none within the time limit, `UsageError` if a secret or a file can't be
        read.
        """
        ...


@contextmanager
def connected(
    connection: StoreConnection, budget: RequestBudget | None = None, configuration: StoreConnection | None = None
) -> Iterator[MetadataReader]:
    """A session that ends with the block; its reads count as requests.

    `configuration`: the store of the cluster's configuration, if that is a different one. Raises `ClusterUnreachable`
    if there is no Pulsar metadata to read, `UsageError` if a file can't be read.
    """
    with ExitStack() as stack:
        store = stack.enter_context(connection.session())
        apart = stack.enter_context(configuration.session()) if configuration is not None else None
        reader = MetadataReader(store, budget, apart)
        if not reader.children("/loadbalance"):
            raise ClusterUnreachable(
                f"{connection.name}: no /loadbalance found: check that this is the cluster's metadata store, with its "
                "chroot or namespace"
            )
        yield reader


class MetadataReader:
    """Reads what Pulsar keeps, by its paths.

    `configuration`, by default the same store, holds what several clusters may share: clusters, tenants, policies and
    partitioned topics (Pulsar `PulsarResources`). Every method raises `ClusterUnreachable` as the stores do, `NotAsked`
    when the budget is spent.
    """

    def __init__(
        self, store: MetadataStore, budget: RequestBudget | None = None, configuration: MetadataStore | None = None
    ) -> None:
        self.kind = store.kind
        self._store = store
        self._budget = budget or RequestBudget()
        self._configuration = self if configuration is None else MetadataReader(configuration, self._budget)

    def children(self, path: str) -> list[str]:
        """Names of a node's children, sorted; empty if the node doesn't exist."""
        return next((names for _, names in self._children([path])), [])

    def active_brokers(self) -> list[str]:
        """Ids of the registered brokers."""
        return self.children("/loadbalance/brokers")

    def broker_nodes(self) -> Iterator[tuple[str, Node]]:
        """(broker id, what it last published); a Modular or Simple report may be 15 minutes old."""
        return self._of_children("/loadbalance/brokers")

    def broker_time_averages(self) -> Iterator[tuple[str, Node]]:
        """(broker id, the leader's averages for it)."""
        return self._of_children("/loadbalance/broker-time-average")

    def bundle_data(self) -> Iterator[tuple[str, Node]]:
        """(bundle, the leader's averages for it); may include nodes of bundles that no longer exist."""
        return self._below("/loadbalance/bundle-data")

    def resource_quotas(self) -> Iterator[tuple[str, Node]]:
        """(bundle or `default`, its assumed resource needs)."""
        root = "/loadbalance/resource-quota"
        return ((name.removeprefix("namespace/"), node) for name, node in self._below(root, leaf=None))

    def local_policies(self) -> Iterator[tuple[str, Node]]:
        """(namespace, its local policies)."""
        return self._below("/admin/local-policies", leaf=None)

    def ownerships(self) -> Iterator[tuple[str, Node]]:
        """(bundle, its owner) under Modular and Simple, including heartbeat bundles.

        A node is made when a broker acquires the bundle, and removed when it releases it.
        """
        return self._below("/namespace")

    def service_unit_states(self) -> Iterator[tuple[str, Node]]:
        """(bundle, its record in the Extensible manager's ownership channel) in 4.0 and later, if it is kept here."""
        return self._below("/service_unit_state")

    def leaders(self) -> Iterator[Node]:
        """The elected leader, if there is one; under Extensible the owner of the state channel comes first."""
        return self._nodes(["/loadbalance/extension/leader", "/loadbalance/leader"])

    def tenants(self) -> list[str]:
        """Names of all tenants; none if the configuration is kept in another store."""
        return self._configuration.children("/admin/policies")

    def policies(self) -> Iterator[tuple[str, Node]]:
        """(namespace, its policies) from the configuration; their boundaries may be older than the local ones."""
        return ((name, node) for name, node in self._configuration._below("/admin/policies", leaf=None) if "/" in name)

    def clusters(self) -> list[str]:
        """Names of the clusters in the configuration; `global` is Pulsar's own marker."""
        return [name for name in self._configuration.children("/admin/clusters") if name != "global"]

    def isolation_policies(self, cluster_name: str) -> Iterator[Node]:
        """Namespace isolation policies by name, if any were ever configured."""
        return self._configuration._nodes([f"/admin/clusters/{cluster_name}/namespaceIsolationPolicies"])

    def failure_domains(self, cluster_name: str) -> Iterator[tuple[str, Node]]:
        """(failure domain, its brokers)."""
        return self._configuration._of_children(f"/admin/clusters/{cluster_name}/failureDomain")

    def dynamic_configuration(self) -> Iterator[Node]:
        """Overrides set through the admin API, if there are any; may hold anything: keep only allow-listed keys."""
        return self._nodes(["/admin/configuration"])

    def partitioned_topics(self) -> Iterator[tuple[str, Node]]:
        """(`tenant/namespace/domain/topic`, its metadata); the topic is encoded as Java encodes it."""
        return self._configuration._below("/admin/partitioned-topics", leaf=None)

    def persistent_topics(self) -> Iterator[tuple[str, list[str]]]:
        """(namespace, full names of its persistent topics), including transaction-internal ones."""
        root = "/managed-ledgers"
        tenants = [f"{root}/{tenant}" for tenant in self.children(root)]
        namespaces = [f"{tenant}/{name}" for tenant, names in self._children(tenants) for name in names]
        for path, topics in self._children(f"{namespace}/persistent" for namespace in namespaces):
            namespace = path.removeprefix(f"{root}/").removesuffix("/persistent")
            yield namespace, [f"persistent://{namespace}/{unquote_plus(topic)}" for topic in topics]

    def scalable_topics(self) -> Iterator[tuple[str, Node]]:
        """(full name `topic://…`, its segments), 5.0 and later."""
        root = "/topics"
        tenants = [f"{root}/{tenant}" for tenant in self.children(root)]
        namespaces = [f"{tenant}/{name}" for tenant, names in self._children(tenants) for name in names]
        for node in self._nodes(f"{path}/{name}" for path, names in self._children(namespaces) for name in names):
            namespace, _, topic = node.path.removeprefix(f"{root}/").rpartition("/")
            yield f"topic://{namespace}/{unquote_plus(topic)}", node

    def segment_loads(self, topics: Iterable[tuple[str, Sequence[int]]]) -> Iterator[tuple[str, Node]]:
        """(path, load) of the segments whose load their topic's controller knows.

        `topics`: (path of a scalable topic, ids of its segments).
        """
        paths = (segment_load_path(topic, segment) for topic, segments in topics for segment in segments)
        return ((node.path, node) for node in self._nodes(paths))

    def _of_children(self, path: str) -> Iterator[tuple[str, Node]]:
        for node in self._nodes(f"{path}/{name}" for name in self.children(path)):
            yield node.path.removeprefix(f"{path}/"), node

    def _below(self, root: str, leaf: re.Pattern[str] | None = _RANGE) -> Iterator[tuple[str, Node]]:
        """Non-empty leaf nodes below a path, by relative name; `leaf` matches the last part of the name."""
        level = [root]
        while level:
            leaves: list[str] = []
            deeper: list[str] = []
            for path, names in self._children(level):
                deeper += (f"{path}/{name}" for name in names if leaf is None or not leaf.fullmatch(name))
                leaves += (f"{path}/{name}" for name in names if leaf is not None and leaf.fullmatch(name))
                if leaf is None and not names and path != root:
                    leaves.append(path)
            for node in self._nodes(leaves):
                if node.data:
                    yield node.path.removeprefix(f"{root}/"), node
            level = deeper

    def _children(self, paths: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        return self._store.children(self._counted(paths))

    def _nodes(self, paths: Iterable[str]) -> Iterator[Node]:
        return self._store.nodes(self._counted(paths))

    def _counted(self, paths: Iterable[str]) -> Iterator[str]:
        for path in paths:
            self._budget.spend()
            yield path
