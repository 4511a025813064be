"""Reads the admin API: one typed method per surface, and no way to send anything but GET.

Left out on purpose: topic statistics and lookups (they assign unowned bundles) and `brokers/health` (it writes).
Source of paths and responses: Pulsar `org.apache.pulsar.broker.admin.v2` (2.10 to 5.0.1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal
from urllib.parse import quote

import msgspec

from pulsar_advisor.admin.answer import Answer
from pulsar_advisor.admin.clock import ClockDifference
from pulsar_advisor.admin.decoding import Document, UnreadableAnswer, decode, unreadable
from pulsar_advisor.admin.request_budget import NotAsked
from pulsar_advisor.admin.transport import LARGEST_ANSWER_BYTES, AdminTransport, Parameters
from pulsar_advisor.admin.web_address import WebAddress, broker_at, broker_host
from pulsar_advisor.model.errors import ClusterUnreachable

Domain = Literal["persistent", "non-persistent"]
"""Whether a topic's messages are stored."""

Observer = Callable[[int, int], None]
"""Receives the HTTP status (0: no response) and the size in bytes of every response."""

LARGEST_REPORT_BYTES: Final = 256 << 20
"""For documents that grow with a broker's bundles (at most 100,000): load report, metrics, owned bundles."""
LARGEST_LISTING_BYTES: Final = 1 << 30
"""For documents that grow with topics (at most ten million): their names, and a broker's topic statistics."""

MIGRATES_SINCE: Final = (4, 2)
SCALABLE_TOPICS_SINCE: Final = (5, 0)

_RELEASE = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){1,3}[0-9A-Za-z.+_-]{0,64}")


def _is_document(text: str) -> bool:
    """Whether it is a JSON object or list; a name may begin like one."""
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


class _Ownership(msgspec.Struct):
    is_active: bool = True


class Leader(msgspec.Struct, rename="camel"):
    """`LeaderBroker`, from a broker or the metadata store. Refuses one that names the leader by no broker's URL."""

    broker_id: str | None = None
    """None if there is no leader; before 3.2 the document has only the URL."""
    service_url: str | None = None

    def __post_init__(self) -> None:
        self.broker_id = self.broker_id or broker_at(self.service_url or "")


class Migration(msgspec.Struct, frozen=True, rename="camel"):
    """The progress and target of a live migration of the metadata store (PIP-454)."""

    phase: str
    """NOT_STARTED, PREPARATION, COPYING, COMPLETED or FAILED."""
    target_url: str | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether metadata can't be written now, and Pulsar defers load balancing; true for unknown phases."""
        return self.phase not in ("NOT_STARTED", "COMPLETED", "FAILED")

    @property
    def has_half_a_copy(self) -> bool:
        """Whether it was begun, and the cluster still uses the old store."""
        return self.phase not in ("NOT_STARTED", "COMPLETED")


class _Partitions(msgspec.Struct):
    partitions: int


class FailureDomain(msgspec.Struct):
    """Ids of the brokers in it, from a broker or the metadata store."""

    brokers: list[str] = msgspec.field(default_factory=list)


LEADER: Final = msgspec.json.Decoder(Leader)
_NAMES = msgspec.json.Decoder(list[str])
_SETTINGS = msgspec.json.Decoder(dict[str, str | None])
_OWNERSHIPS = msgspec.json.Decoder(dict[str, _Ownership])
_MIGRATION = msgspec.json.Decoder(Migration)
_PARTITIONS = msgspec.json.Decoder(_Partitions)
_DOMAINS = msgspec.json.Decoder(dict[str, FailureDomain])


class ReadClient:
    """Reads from one cluster. The transport's GET is all it has access to.

    Methods that take a `broker` (its id, `host:port`) query that broker; the others query any broker:
    `any_broker_url` if given, else the admin URLs in turn. Every method raises `ErrorAnswer`, `UnreadableAnswer`,
    and whatever `AdminTransport` raises.
    """

    def __init__(
        self, transport: AdminTransport, *, any_broker_url: str | None = None, observe: Observer | None = None
    ) -> None:
        self._send = transport.get
        self._require = transport.require
        self._trust_brokers = transport.trust_brokers
        self._learn_web_address = transport.learn_web_address
        self._web_address = transport.web_address
        self._own_url = transport.own_url
        self._another_broker = transport.another_broker
        self._any_broker_url = any_broker_url
        self._observe = observe

    def runtime_configuration(self, broker: str | None = None) -> dict[str, str]:
        """All settings of a broker (null as ""), **secrets included**: keep only allow-listed keys. Super-user."""
        return self._settings("/admin/v2/brokers/configuration/runtime", broker)

    def dynamic_configuration(self) -> dict[str, str]:
        """Overrides set through the admin API; may hold anything, secrets included. Super-user."""
        return self._settings("/admin/v2/brokers/configuration/values")

    def version(self, broker: str) -> str:
        """Release of a broker, as `4.0.8`."""
        return self.version_and_clock(broker)[0]

    def version_and_clock(self, broker: str) -> tuple[str, ClockDifference | None]:
        """Release of a broker, and the offset of its clock from ours, if the response has a `Date`."""
        answer = own_answer(self._get("/admin/v2/brokers/version", broker), broker)
        release = answer.text.strip().strip('"')
        if not is_release(release):
            raise UnreadableAnswer(answer.url, "expected a release such as 4.0.8", answer.body)
        return release, answer.clock

    def active_brokers(self, cluster_name: str) -> tuple[str, ...]:
        """Ids of the registered brokers, sorted. From now on, redirects to their hosts are followed. Super-user."""
        document = self._document(f"/admin/v2/brokers/{escaped(cluster_name)}", limit_bytes=LARGEST_ANSWER_BYTES)
        brokers: list[str] = decode(document, _NAMES)
        try:
            self._trust_brokers(brokers)
        except ValueError as error:
            raise unreadable(document, error) from error
        return tuple(sorted(brokers))

    def leader(self) -> str | None:
        """Id of the leader, None if there is currently none. Super-user; 2.8 and later."""
        found = self._document_if_any("/admin/v2/brokers/leaderBroker")
        return None if found is None else decode(found, LEADER).broker_id

    def owned_bundles(self, cluster_name: str, broker: str) -> dict[str, bool]:
        """Bundles (`tenant/namespace/range`) owned by a broker, and whether each is active (not being unloaded).

        Includes heartbeat and SLA bundles. The transport learns the broker's web address from the call. Super-user.
        """
        answer = self._owned(cluster_name, broker, broker if self._web_address(broker) else None)
        if self._web_address(broker) is None and (other := self._another_broker(broker)) is not None:
            # The broker answered itself, under a load balancer's name or an alias. Another broker redirects to its
            # address.
            with suppress(ClusterUnreachable):
                if self._web_address(other) is None:
                    self._owned(cluster_name, other)
                if self._web_address(other) is not None:
                    self._owned(cluster_name, broker, other)
        owned = decode(Document(answer.url, answer.body), _OWNERSHIPS)
        return {bundle: ownership.is_active for bundle, ownership in owned.items()}

    def _owned(self, cluster_name: str, broker: str, asked: str | None = None) -> Answer:
        """What a broker owns, from the broker that is `asked`, or from any: they redirect to the right one."""
        path = f"/admin/v2/brokers/{escaped(cluster_name)}/{escaped(broker)}/ownedNamespaces"
        answer = self._get(path, asked, limit_bytes=LARGEST_REPORT_BYTES)
        self._learn_web_address(broker, answer.url)
        return answer

    def load_report(self, broker: str) -> Document:
        """`LocalBrokerData` (Modular) or `LoadReport` (Simple), fresh; 500 under Extensible. Super-user."""
        return self._document("/admin/v2/broker-stats/load-report", broker, limit_bytes=LARGEST_REPORT_BYTES)

    def broker_metrics(self, broker: str) -> Document:
        """Metrics of a broker; under Extensible its load is in `brk_lb_*_usage`. Super-user."""
        return self._document("/admin/v2/broker-stats/metrics", broker, limit_bytes=LARGEST_REPORT_BYTES)

    def broker_topics(self, broker: str) -> Document:
        """Statistics of every topic loaded on a broker, as of its last statistics update. Super-user."""
        return self._document("/admin/v2/broker-stats/topics", broker, limit_bytes=LARGEST_LISTING_BYTES)

    def tenants(self) -> tuple[str, ...]:
        """Names of all tenants, sorted. Super-user."""
        return self._names("/admin/v2/tenants")

    def namespaces(self, tenant: str) -> tuple[str, ...]:
        """Namespaces of a tenant as `tenant/namespace`, sorted."""
        return self._names(f"/admin/v2/namespaces/{escaped(tenant)}")

    def policies(self, namespace: str) -> Document:
        """Policies of a namespace; their `bundles` are the effective ones."""
        return self._document(f"/admin/v2/namespaces/{escaped(namespace)}")

    def anti_affinity_group(self, namespace: str) -> str | None:
        """Anti-affinity group of a namespace, None if it has none. Quotes that a client sent are part of it."""
        answer = self._get(f"/admin/v2/namespaces/{escaped(namespace)}/antiAffinity", accepted=(200, 204))
        group = answer.text.strip()
        if group.startswith("<") or _is_document(group):
            raise UnreadableAnswer(answer.url, "expected a name, not a page or a document", answer.body)
        return group or None

    def isolation_policies(self, cluster_name: str) -> Document:
        """Namespace isolation policies by name, in the order Pulsar matches them. Super-user."""
        path = f"/admin/v2/clusters/{escaped(cluster_name)}/namespaceIsolationPolicies"
        return self._document_if_any(path) or Document(path, b"{}")  # none was ever configured

    def failure_domains(self, cluster_name: str) -> dict[str, list[str]]:
        """Ids of the brokers of each failure domain. Super-user."""
        domains = decode(self._document(f"/admin/v2/clusters/{escaped(cluster_name)}/failureDomains"), _DOMAINS)
        return {name: domain.brokers for name, domain in domains.items()}

    def persistent_topics(self, namespace: str) -> tuple[str, ...]:
        """Full names of all persistent topics of a namespace, loaded or not, including partitions and system topics."""
        return self._names(f"/admin/v2/persistent/{escaped(namespace)}", {"includeSystemTopic": "true"})

    def partitioned_topics(self, namespace: str, domain: Domain) -> tuple[str, ...]:
        """Full names of the partitioned topics (parents) of a namespace."""
        return self._names(f"/admin/v2/{domain}/{escaped(namespace)}/partitioned", {"includeSystemTopic": "true"})

    def partitions(self, topic: str) -> int | None:
        """Number of partitions of a topic, by its full name; None if it no longer exists."""
        found = self._document_if_any(f"/admin/v2/{topic_path(topic)}/partitions")
        return None if found is None else decode(found, _PARTITIONS).partitions

    def scalable_topics(self, namespace: str) -> tuple[str, ...]:
        """Full names (`topic://…`) of the scalable topics of a namespace, whose segments no other list has. 5.0 and
        later."""
        return self._names(f"/admin/v2/scalable/{escaped(namespace)}")

    def scalable_topic(self, topic: str) -> Document | None:
        """The segments of a scalable topic, by its full name; None if it no longer exists. Its statistics would load
        segments."""
        path = topic_path(topic).removeprefix("topic/")
        return self._document_if_any(f"/admin/v2/scalable/{path}", LARGEST_REPORT_BYTES)

    def migration(self) -> Migration | None:
        """A live migration of the metadata store; None if the release has none. Super-user; 4.2 and later."""
        answer = self._get("/admin/v2/metadata/migration/status", accepted=(200, 404))
        return None if answer.status == 404 else decode(Document(answer.url, answer.body), _MIGRATION)

    def _names(self, path: str, params: Parameters | None = None) -> tuple[str, ...]:
        names: list[str] = decode(self._document(path, None, params, LARGEST_LISTING_BYTES), _NAMES)
        return tuple(sorted(names))

    def _settings(self, path: str, broker: str | None = None) -> dict[str, str]:
        return {key: value or "" for key, value in decode(self._document(path, broker), _SETTINGS).items()}

    def _document(
        self,
        path: str,
        broker: str | None = None,
        params: Parameters | None = None,
        limit_bytes: int = LARGEST_ANSWER_BYTES,
    ) -> Document:
        answer = self._get(path, broker, params, limit_bytes=limit_bytes)
        if broker is not None:
            own_answer(answer, broker)
        return Document(answer.url, answer.body)

    def _document_if_any(self, path: str, limit_bytes: int = LARGEST_ANSWER_BYTES) -> Document | None:
        """The document; None if Pulsar says that there is none."""
        answer = self._get(path, accepted=(200, 404), limit_bytes=limit_bytes)
        return None if answer.is_absence else Document(self._require(answer, 200).url, answer.body)

    def _get(
        self,
        path: str,
        broker: str | None = None,
        params: Parameters | None = None,
        accepted: tuple[int, ...] = (200,),
        limit_bytes: int = LARGEST_ANSWER_BYTES,
    ) -> Answer:
        url = self._any_broker_url if broker is None else self._own_url(broker)
        observe = self._observe or _unobserved
        try:
            answer = self._send(path, broker_url=url, params=params, limit_bytes=limit_bytes)
        except NotAsked:
            raise
        except ClusterUnreachable:
            observe(0, 0)
            raise
        observe(answer.status, len(answer.body))
        return self._require(answer, *accepted)


def own_answer(answer: Answer, broker: str) -> Answer:
    """A broker's answer about itself. Raises `UnreadableAnswer` if a redirect led to another broker."""
    if WebAddress.parse(answer.url).host != broker_host(broker):
        raise UnreadableAnswer(answer.url, f"redirected from {broker}, whose own answer is needed", answer.body)
    return answer


def some_active(brokers: tuple[str, ...], cluster_name: str) -> tuple[str, ...]:
    """The active brokers themselves. Raises `ClusterUnreachable` if there is none: whoever answers is one."""
    if not brokers:
        raise ClusterUnreachable(f"cluster '{cluster_name}' has no active broker: try again once one is registered")
    return brokers


def is_release(text: str) -> bool:
    """Whether a broker's text is a release, such as `4.0.8` or `5.0.0-M1`."""
    return _RELEASE.fullmatch(text) is not None


def _unobserved(_status: int, _size: int) -> None:
    """The observer of a client that has none."""


def escaped(name: str) -> str:
    """A name in the path of a request; `tenant/namespace` and `host:port` stay as they are."""
    return quote(name, safe="/:")


def topic_path(topic: str) -> str:
    """A topic's full name in the path of a request: `persistent/tenant/namespace/…`, its own part escaped whole.

    A segment's own part (`segment://tenant/namespace/name/0000-7fff-1`) has a slash, as has a topic's in a three-part
    namespace.
    """
    domain, _, name = topic.partition("://")
    tenant, _, in_tenant = name.partition("/")
    namespace, _, local_name = in_tenant.partition("/")
    return f"{escaped(domain)}/{escaped(tenant)}/{escaped(namespace)}/{quote(local_name, safe='')}"
