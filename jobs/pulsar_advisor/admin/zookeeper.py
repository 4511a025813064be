"""What the cluster keeps in ZooKeeper: ownership, boundaries, the leader's averages, topic names. Read-only.

Source of paths and contents: Pulsar `MetadataStoreCacheLoader`, `OwnershipCache`, `ModularLoadManagerImpl`,
`BaseResources`, `ManagedLedgerFactoryImpl` (2.10 to 4.2).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import unquote_plus

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pulsar_advisor.admin.read_client import Document
from pulsar_advisor.admin.request_budget import RequestBudget
from pulsar_advisor.admin.secret import Secret, secret_line
from pulsar_advisor.admin.tls_files import require_tls_files
from pulsar_advisor.admin.user_path import UserPath
from pulsar_advisor.model.errors import ClusterUnreachable

CALLS_IN_FLIGHT: Final = 64

_HOST = r"(\[[0-9a-fA-F:]+\]|[\w.-]+)(:\d+)?"
_HOSTS = re.compile(rf"{_HOST}(,{_HOST})*(/\S*)?")
_RANGE = re.compile(r"0x[0-9a-f]{8}_0x[0-9a-f]{8}")

# kazoo logs every failed connection attempt as a warning; our own error covers it.
_silent = logging.getLogger(f"{__name__}.kazoo")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


class ZooKeeperConnection(BaseModel):
    """Where the cluster's metadata store is, and how to authenticate to it; secrets as in `AdminConnection`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    hosts: str
    """`host:port[,host:port…][/chroot]`, the text of `metadataStoreUrl` without its `zk:`."""
    timeout_s: float = Field(default=15.0, gt=0)
    """For the session and for each read."""
    digest_user: str | None = None
    """For ZooKeeper's `digest` scheme, if it protects the nodes."""
    digest_password: Secret | None = None
    digest_password_file: UserPath | None = None
    digest_password_env: str | None = None
    tls: bool = False
    """Whether `hosts` names the servers' TLS ports."""
    tls_ca_file: UserPath | None = None
    """Certificates to trust in addition to the system's."""
    tls_cert_file: UserPath | None = None
    tls_key_file: UserPath | None = None
    tls_verify_hostname: bool = True

    @field_validator("hosts")
    @classmethod
    def _without_scheme(cls, hosts: str) -> str:
        hosts = hosts.removeprefix("zk:")
        if not _HOSTS.fullmatch(hosts):
            raise ValueError("not a ZooKeeper address; expected the form zk1:2181,zk2:2181/chroot")
        return hosts.removesuffix("/")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        passwords = (self.digest_password, self.digest_password_file, self.digest_password_env)
        if sum(password is not None for password in passwords) != (self.digest_user is not None):
            raise ValueError("digest_user requires exactly one of digest_password_file, digest_password_env")
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file must be given together")
        if (self.tls_ca_file or self.tls_cert_file) and not self.tls:
            raise ValueError("certificates require tls = true")
        return self

    def client(self) -> KazooClient:
        """An unconnected client. Raises `UsageError` if the password or a file can't be read."""
        require_tls_files(self.tls_ca_file, self.tls_cert_file, self.tls_key_file)
        digest = []
        if self.digest_user is not None:
            password = secret_line(self.digest_password, self.digest_password_file, self.digest_password_env)
            digest = [("digest", f"{self.digest_user}:{password}")]
        return KazooClient(
            hosts=self.hosts,
            timeout=self.timeout_s,
            read_only=True,
            logger=_silent,
            connection_retry=None,
            auth_data=digest,
            use_ssl=self.tls,
            ca=self.tls_ca_file and str(self.tls_ca_file),
            certfile=self.tls_cert_file and str(self.tls_cert_file),
            keyfile=self.tls_key_file and str(self.tls_key_file),
            check_hostname=self.tls and self.tls_verify_hostname,
        )


@dataclass(frozen=True)
class Node:
    """One node: its content, when it was made and last written, and its version (the compare-and-set token)."""

    path: str
    data: bytes
    created_at_ms: int
    modified_at_ms: int
    version: int

    @property
    def document(self) -> Document:
        """The content, ready to decode."""
        return Document(f"zookeeper:{self.path}", self.data)


@contextmanager
def connected(connection: ZooKeeperConnection, budget: RequestBudget | None = None) -> Iterator[ZooKeeperReader]:
    """A session that ends with the block; its reads count as requests.

    Raises `ClusterUnreachable` if there is no Pulsar metadata to read, `UsageError` if a file can't be read.
    """
    client = connection.client()
    where = f"ZooKeeper {connection.hosts}"
    try:
        try:
            client.start(timeout=connection.timeout_s)
        except (KazooTimeoutError, KazooException, OSError) as error:
            what = f"no session within {connection.timeout_s:g} s: check hosts, port and firewall"
            if connection.tls:
                what += ", that it is the secure port, and the certificates on both sides"
            raise ClusterUnreachable(f"{where}: {what}") from error
        reader = ZooKeeperReader(client, connection, budget)
        if not reader.children("/loadbalance"):
            raise ClusterUnreachable(
                f"{where}: it has no /loadbalance: check that this is the cluster's metadata store, with its chroot"
            )
        yield reader
    finally:
        client.stop()
        client.close()


class ZooKeeperReader:
    """Reads within one session; nodes that vanish between listing and reading are skipped.

    Every method raises `ClusterUnreachable` when the session is lost or a read takes too long, `NotAsked` when the
    budget is spent.
    """

    def __init__(
        self, client: KazooClient, connection: ZooKeeperConnection, budget: RequestBudget | None = None
    ) -> None:
        self._budget = budget or RequestBudget()
        self._get_children = client.get_children_async
        self._get = client.get_async
        self._connection = connection

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
        """Names of all tenants, if the configuration is kept in the same store."""
        return self.children("/admin/policies")

    def policies(self) -> Iterator[tuple[str, Node]]:
        """(namespace, its policies) from the configuration; their boundaries may be older than the local ones."""
        return ((name, node) for name, node in self._below("/admin/policies", leaf=None) if "/" in name)

    def clusters(self) -> list[str]:
        """Names of the clusters in the configuration; `global` is Pulsar's own marker."""
        return [name for name in self.children("/admin/clusters") if name != "global"]

    def isolation_policies(self, cluster_name: str) -> Iterator[Node]:
        """Namespace isolation policies by name, if any were ever configured."""
        return self._nodes([f"/admin/clusters/{cluster_name}/namespaceIsolationPolicies"])

    def failure_domains(self, cluster_name: str) -> Iterator[tuple[str, Node]]:
        """(failure domain, its brokers)."""
        return self._of_children(f"/admin/clusters/{cluster_name}/failureDomain")

    def dynamic_configuration(self) -> Iterator[Node]:
        """Overrides set through the admin API, if there are any; may hold anything: keep only allow-listed keys."""
        return self._nodes(["/admin/configuration"])

    def partitioned_topics(self) -> Iterator[tuple[str, Node]]:
        """(`tenant/namespace/domain/topic`, its metadata); the topic is encoded as Java encodes it."""
        return self._below("/admin/partitioned-topics", leaf=None)

    def persistent_topics(self) -> Iterator[tuple[str, list[str]]]:
        """(namespace, full names of its persistent topics), including transaction-internal ones."""
        root = "/managed-ledgers"
        tenants = [f"{root}/{tenant}" for tenant in self.children(root)]
        namespaces = [f"{tenant}/{name}" for tenant, names in self._children(tenants) for name in names]
        for path, topics in self._children(f"{namespace}/persistent" for namespace in namespaces):
            namespace = path.removeprefix(f"{root}/").removesuffix("/persistent")
            yield namespace, [f"persistent://{namespace}/{unquote_plus(topic)}" for topic in topics]

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
        for path, names in self._each(self._get_children, paths):
            yield path, sorted(names)

    def _nodes(self, paths: Iterable[str]) -> Iterator[Node]:
        for path, (data, stat) in self._each(self._get, paths):
            yield Node(path, data, stat.ctime, stat.mtime, stat.version)

    def _each(self, read: Any, paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """The result of a read for every path that exists, in order; with bounded concurrency."""
        in_flight: list[tuple[str, Any]] = []
        for path in paths:
            self._budget.spend()
            in_flight.append((path, read(path)))
            if len(in_flight) == CALLS_IN_FLIGHT:
                yield from self._results(in_flight)
                in_flight = []
        yield from self._results(in_flight)

    def _results(self, calls: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        for path, call in calls:
            try:
                yield path, call.get(timeout=self._connection.timeout_s)
            except NoNodeError:
                continue
            except NoAuthError as error:
                todo = "use another digest_user" if self._connection.digest_user else "give a digest_user"
                raise ClusterUnreachable(
                    f"ZooKeeper {self._connection.hosts}: no permission to read {path}: {todo}"
                ) from error
            except (KazooTimeoutError, KazooException) as error:
                raise ClusterUnreachable(
                    f"ZooKeeper {self._connection.hosts}: reading {path} failed ({type(error).__name__}): try again"
                ) from error
