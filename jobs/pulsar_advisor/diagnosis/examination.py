"""Tries every kind of read that a capture makes, once and at low cost, and records the outcomes.

Every broker is asked for its owned bundles, settings, release, load report (or, under Extensible, metrics) and time.
Topic statistics, by far the largest documents, are read from one broker, and namespace documents for one namespace.
Nothing is written anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, ParamSpec, TypeVar

import msgspec

from pulsar_advisor.admin.answer import ErrorAnswer
from pulsar_advisor.admin.clock import ClockDifference
from pulsar_advisor.admin.decoding import Document, decode
from pulsar_advisor.admin.metadata_store import MetadataReader, StoreConnection, connected
from pulsar_advisor.admin.no_answer import NoAnswer
from pulsar_advisor.admin.oauth2 import NoToken
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.read_client import MIGRATES_SINCE, SCALABLE_TOPICS_SINCE, Migration, ReadClient, is_release
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.capture.documents import ISOLATION_POLICIES, LOAD_REPORT, POLICIES
from pulsar_advisor.capture.session import identify_in
from pulsar_advisor.capture.system_topics import refusal
from pulsar_advisor.model.cluster.cluster_state import LoadManagerKind
from pulsar_advisor.model.configuration.class_names import load_manager_kind
from pulsar_advisor.model.configuration.defaults import storable
from pulsar_advisor.model.configuration.releases import release_number
from pulsar_advisor.model.errors import ClusterUnreachable, UsageError

P = ParamSpec("P")
T = TypeVar("T")

TENANTS_TRIED: Final = 20
"""How many tenants are searched for a namespace to try."""

_VERSION = "/admin/v2/brokers/version"
_NAMES = msgspec.json.Decoder(list[str])

_SCHEMES: Final = ("zk", "oxia", "etcd", "rocksdb", "memory")
"""Schemes of every metadata store that Pulsar has supported."""


@dataclass(frozen=True)
class Lack:
    """Something that could not be read. `status` is the HTTP status, None without a response."""

    status: int | None
    reason: str


@dataclass
class BrokerAnswers:
    """The results from one broker. `lacks` has the surfaces that could not be read."""

    lacks: dict[str, Lack] = field(default_factory=dict)
    release: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    """Keys of the allow-list."""
    load_manager: LoadManagerKind | None = None
    clock: ClockDifference | None = None
    store_scheme: str = ""
    """Scheme of its `metadataStoreUrl`: zk, oxia, etcd…; empty if unknown."""
    configuration_scheme: str = ""
    """Scheme of its `configurationMetadataStoreUrl`; empty if that is the same address, or unknown."""
    internal_listener: str = ""
    """Its `internalListenerName`, by which a broker of 5.0 looks topics up."""
    listeners: frozenset[str] = frozenset()
    """Names of its `advertisedListeners`."""

    @property
    def silence(self) -> Lack | None:
        """Why the broker's address gave no response; None if it responded."""
        return next((lack for lack in self.lacks.values() if lack.status is None), None)


@dataclass(frozen=True)
class StoreAnswers:
    """The results from the metadata store."""

    lack: str | None
    """Why it can't be used."""
    brokers: tuple[str, ...] = ()
    has_bundle_data: bool = False
    kind: str = "ZooKeeper"
    has_tenants: bool = True
    """If not, the cluster's configuration is kept elsewhere."""


@dataclass(frozen=True)
class SystemTopicsAnswer:
    """The results for the Extensible manager's system topics."""

    lack: str | None
    """Why they can't be read."""


@dataclass
class Examination:
    """The results from a cluster."""

    admin_urls: dict[str, str | Lack]
    """Each admin URL with the release that answers there; empty if only ZooKeeper was queried."""
    cluster_name: str = ""
    brokers: tuple[str, ...] = ()
    leader: str | None = None
    dynamic: dict[str, str] = field(default_factory=dict)
    """Dynamic settings: keys of the allow-list."""
    checks_permissions: bool | None = None
    """Whether the brokers authorize their callers; None if their settings can't be read."""
    lacks: dict[str, Lack] = field(default_factory=dict)
    """By surface, for the surfaces that any broker can answer."""
    migration: Migration | None = None
    """A live migration of the metadata store; None if its release has none, or it is unknown."""
    asked: set[str] = field(default_factory=set)
    """The surfaces requested, whether they could be read or not."""
    answers: dict[str, BrokerAnswers] = field(default_factory=dict)
    """By broker id."""
    topics_asked_of: str | None = None
    """The broker whose topic statistics were read."""
    store: StoreAnswers | None = None
    """None if no metadata store was given."""
    system_topics: SystemTopicsAnswer | None = None
    """None if no service URL was given, or no broker runs the Extensible manager."""

    @property
    def is_answered(self) -> bool:
        """Whether a broker answers at any admin URL."""
        return any(isinstance(release, str) for release in self.admin_urls.values())

    @property
    def releases(self) -> dict[str, str]:
        """By broker, as far as known."""
        return {broker: answers.release for broker, answers in self.answers.items() if answers.release is not None}

    @property
    def load_managers(self) -> dict[str, LoadManagerKind]:
        """By broker, as far as known."""
        known = {broker: answers.load_manager for broker, answers in self.answers.items()}
        return {broker: kind for broker, kind in known.items() if kind is not None}

    @property
    def leading_settings(self) -> Mapping[str, str]:
        """The leader's settings; any broker's if the leader's are unknown."""
        leading = [self.leader] if self.leader is not None else []
        known = (self.answers[broker].settings for broker in [*leading, *self.brokers] if broker in self.answers)
        return next(filter(None, known), {})


def examine(options: CaptureOptions) -> Examination:
    """Read everything. What can't be read is recorded.

    Raises `UsageError` if a secret or TLS file can't be read, `NoToken` if the OAuth2 issuer returns no token.
    """
    if options.admin is None:
        assert options.metadata_store is not None
        return _examine_store(options.metadata_store, options.configuration_store)
    with AdminTransport(options.admin) as transport:
        found = Examination({url: _release_at(transport, url) for url in options.admin.admin_urls})
        if options.metadata_store is not None:
            found.store = _ask_store(options.metadata_store)
        if not found.is_answered:  # the store's brokers aren't asked: they would get credentials meant for others
            return found
        _ask_cluster(found, transport)
        with ThreadPoolExecutor(options.concurrency, thread_name_prefix="doctor") as pool:
            answers = pool.map(lambda broker: _ask_broker(transport, found.cluster_name, broker), found.brokers)
            found.answers = dict(zip(found.brokers, answers, strict=True))
        _ask_for_topics(found, transport)
        if options.service_url is not None and "extensible" in found.load_managers.values():
            found.system_topics = SystemTopicsAnswer(refusal(transport, options.service_url))
        return found


def _attempt(lacks: dict[str, Lack], surface: str, read: Callable[[], T]) -> T | None:
    """The result, or None after recording the lack; a surface's first record is kept."""
    try:
        return read()
    except NoToken:
        raise
    except ErrorAnswer as error:
        lacks.setdefault(surface, Lack(error.status, str(error)))
    except NoAnswer as error:
        lacks.setdefault(surface, Lack(None, str(error)))
    except ClusterUnreachable as error:  # a response arrived, but it can't be read or followed
        lacks.setdefault(surface, Lack(200, str(error)))
    return None


def _release_at(transport: AdminTransport, url: str) -> str | Lack:
    lacks: dict[str, Lack] = {}
    answer = _attempt(lacks, "brokers", lambda: transport.require(transport.get(_VERSION, broker_url=url), 200))
    if answer is None:
        return lacks["brokers"]
    release = answer.text.strip().strip('"')
    if not is_release(release):
        return Lack(200, f"{url}: responds, but without a release: check that this is the admin URL of a Pulsar broker")
    return release


def _ask_cluster(found: Examination, transport: AdminTransport) -> None:
    client = ReadClient(transport)

    def ask(surface: str, read: Callable[P, T], *parameters: P.args, **named: P.kwargs) -> T | None:
        found.asked.add(surface)
        return _attempt(found.lacks, surface, lambda: read(*parameters, **named))

    settings = ask("settings", client.runtime_configuration)
    if settings is not None:
        found.checks_permissions = settings.get("authorizationEnabled") == "true"
    named = (settings or {}).get("clusterName", "")
    found.cluster_name = named or _attempt({}, "", lambda: _first_cluster(transport)) or ""

    def cluster_name() -> str:
        return found.cluster_name or _first_cluster(transport)

    found.brokers = ask("brokers", lambda: client.active_brokers(cluster_name())) or ()
    found.leader = ask("leader", client.leader)
    # During an upgrade, only brokers of the later release answer.
    releases = {url: release_number(release) for url, release in found.admin_urls.items() if isinstance(release, str)}
    newest_at = max(releases, key=releases.__getitem__)
    newest, of_newest = releases[newest_at], ReadClient(transport, any_broker_url=newest_at)
    if newest >= MIGRATES_SINCE:
        found.migration = ask("metadata_store", of_newest.migration)
    found.dynamic = storable(ask("settings", client.dynamic_configuration) or {})
    ask("isolation_policies", lambda: decode(client.isolation_policies(cluster_name()), ISOLATION_POLICIES))
    ask("failure_domains", lambda: client.failure_domains(cluster_name()))
    namespaces: tuple[str, ...] = ()
    for tenant in (ask("tenants", client.tenants) or ())[:TENANTS_TRIED]:
        namespaces = ask("namespaces", client.namespaces, tenant) or ()
        if namespaces:
            break
    if namespaces:
        namespace = namespaces[0]
        ask("namespaces", lambda: decode(client.policies(namespace), POLICIES))
        ask("namespaces", client.anti_affinity_group, namespace)
        ask("topic_names", client.persistent_topics, namespace)
        ask("partitioned_topics", client.partitioned_topics, namespace, "persistent")
        if newest >= SCALABLE_TOPICS_SINCE:
            ask("segments", of_newest.scalable_topics, namespace)


def _first_cluster(transport: AdminTransport) -> str:
    """The cluster's name, which before 5.0.1 any role may read; the first one if several replicate to each other."""
    answer = transport.require(transport.get("/admin/v2/clusters"), 200)
    names: list[str] = decode(Document(answer.url, answer.body), _NAMES)
    return next(iter(names), "")


def _ask_broker(transport: AdminTransport, cluster_name: str, broker: str) -> BrokerAnswers:
    client = ReadClient(transport)
    answers = BrokerAnswers()

    def ask(surface: str, read: Callable[[], T]) -> T | None:
        # A broker that doesn't answer once isn't queried again: each request would only cost a time-out.
        return None if answers.silence else _attempt(answers.lacks, surface, read)

    # First, because behind https its response reveals the broker's address.
    ask("owned_bundles", lambda: client.owned_bundles(cluster_name, broker))
    settings = ask("settings", lambda: client.runtime_configuration(broker)) or {}
    answers.settings = storable(settings)
    answers.store_scheme = _scheme(settings.get("metadataStoreUrl", ""))
    apart = settings.get("configurationMetadataStoreUrl", "")
    answers.configuration_scheme = _scheme(apart) if apart != settings.get("metadataStoreUrl") else ""
    answers.internal_listener = settings.get("internalListenerName", "")
    listeners = settings.get("advertisedListeners", "").split(",")
    answers.listeners = frozenset(listener.strip().partition(":")[0] for listener in listeners)
    answers.release, answers.clock = ask("brokers", lambda: client.version_and_clock(broker)) or (None, None)
    class_name = settings.get("loadManagerClassName")
    answers.load_manager = load_manager_kind(None, class_name)
    if answers.load_manager == "extensible":
        ask("broker_metrics", lambda: client.broker_metrics(broker))
    else:
        report = ask("load_reports", lambda: decode(client.load_report(broker), LOAD_REPORT))
        if report is not None:
            answers.load_manager = load_manager_kind(report.loadReportType or None, class_name)
    return answers


def _ask_for_topics(found: Examination, transport: AdminTransport) -> None:
    found.topics_asked_of = next((broker for broker, answers in found.answers.items() if answers.silence is None), None)
    if (broker := found.topics_asked_of) is not None:
        _attempt(found.answers[broker].lacks, "topic_stats", lambda: ReadClient(transport).broker_topics(broker))


def _ask_store(connection: StoreConnection) -> StoreAnswers:
    try:
        with connected(connection) as metadata:
            return _answers_of(connection, metadata)
    except ClusterUnreachable as error:
        return StoreAnswers(str(error), kind=connection.kind)


def _examine_store(connection: StoreConnection, configuration: StoreConnection | None) -> Examination:
    """The examination for a capture without the admin API."""
    try:
        with connected(connection, configuration=configuration) as metadata:
            try:
                identity = identify_in(metadata)
            except UsageError as error:
                return Examination({}, store=StoreAnswers(str(error), kind=connection.kind))
            return Examination(
                {},
                cluster_name=identity.cluster_name,
                brokers=identity.brokers,
                leader=identity.leader,
                store=_answers_of(connection, metadata),
            )
    except ClusterUnreachable as error:
        return Examination({}, store=StoreAnswers(str(error), kind=connection.kind))


def _answers_of(connection: StoreConnection, metadata: MetadataReader) -> StoreAnswers:
    for path in ("/namespace", "/admin/local-policies", "/managed-ledgers"):
        metadata.children(path)
    return StoreAnswers(
        None,
        brokers=tuple(metadata.active_brokers()),
        has_bundle_data=bool(metadata.children("/loadbalance/bundle-data")),
        has_tenants=bool(metadata.tenants()),
        kind=connection.kind,
    )


def _scheme(url: str) -> str:
    """The rest of the address may name hosts and secrets, and is not kept."""
    scheme, colon, _ = url.partition(":")
    return scheme if colon and scheme in _SCHEMES else ""
