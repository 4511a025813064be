"""`ClusterPort` over the admin REST API: the only module in the package that sends anything but GET.

Source of paths and answers: Pulsar `org.apache.pulsar.broker.admin.v2` and `broker.lookup.v2` (2.10 to 5.0.1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache, cached_property
from itertools import chain
from typing import Final, Literal
from urllib.parse import quote

import msgspec
import numpy as np
from msgspec.structs import astuple

from pulsar_advisor.admin.answer import ErrorAnswer
from pulsar_advisor.admin.decoding import Document, UnreadableAnswer, decode, unreadable
from pulsar_advisor.admin.read_client import (
    LARGEST_LISTING_BYTES,
    ReadClient,
    escaped,
    own_answer,
    some_active,
    topic_path,
)
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.execution.cluster.cluster_port import Override, Reply, Split, Unload
from pulsar_advisor.model.cluster.bundle_range import contains, parse_range, topic_hash
from pulsar_advisor.model.cluster.cluster_state import IsolationPolicy, LoadManagerKind
from pulsar_advisor.model.configuration.class_names import LOAD_MANAGERS, load_manager_kind, simple_name
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings, setting_value
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import AdvisorError, ClusterUnreachable
from pulsar_advisor.model.load.resource_usage import WEIGHT_KEYS, weighted_maximum
from pulsar_advisor.model.text.plain_text import plain

_STATISTICS_PASS_S: Final = 15
"""How long a broker's statistics pass may be late, and take."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
"""A number in a setting, no longer than a Java long: Python refuses to parse thousands of digits."""

_Figure = float | Literal["NaN", "Infinity", "-Infinity"]
"""Jackson writes a non-finite number as quoted text."""


class _Bundles(msgspec.Struct):
    boundaries: list[str]


class _Resource(msgspec.Struct):
    usage: _Figure = 0.0
    limit: _Figure = 0.0


class _Resources(msgspec.Struct, rename="camel"):
    """In the order of `model.cluster.cluster_state.RESOURCES`."""

    cpu: _Resource = msgspec.field(default_factory=_Resource)
    memory: _Resource = msgspec.field(default_factory=_Resource)
    direct_memory: _Resource = msgspec.field(default_factory=_Resource)
    bandwidth_in: _Resource = msgspec.field(default_factory=_Resource)
    bandwidth_out: _Resource = msgspec.field(default_factory=_Resource)


class _LoadReport(_Resources, rename="camel"):
    system_resource_usage: _Resources | None = None
    """The Simple manager keeps the resources here, the Modular one in the report itself."""
    start_timestamp: int | None = None
    """Milliseconds; since 3.0."""
    load_report_type: str | None = None


class _Percents(msgspec.Struct, rename=lambda resource: f"brk_lb_{resource}_usage"):
    """Metrics of an Extensible broker, in the order of `model.cluster.cluster_state.RESOURCES`."""

    cpu: _Figure | None = None
    memory: _Figure | None = None
    directMemory: _Figure | None = None  # noqa: N815 (Pulsar's name)
    bandwidth_in: _Figure | None = None
    bandwidth_out: _Figure | None = None


class _Metrics(msgspec.Struct):
    metrics: _Percents = msgspec.field(default_factory=_Percents)


class _Policies(msgspec.Struct):
    bundles: _Bundles | None = None
    deleted: bool = False


class _FailoverParameters(msgspec.Struct):
    """Numbers, which Pulsar stores as text."""

    min_limit: int = 0
    usage_threshold: int = 100


class _FailoverPolicy(msgspec.Struct):
    parameters: _FailoverParameters = msgspec.field(default_factory=_FailoverParameters)


class _IsolationPolicy(msgspec.Struct):
    namespaces: list[str] = msgspec.field(default_factory=list)
    primary: list[str] = msgspec.field(default_factory=list)
    secondary: list[str] = msgspec.field(default_factory=list)
    auto_failover_policy: _FailoverPolicy = msgspec.field(default_factory=_FailoverPolicy)


_LOAD_REPORT = msgspec.json.Decoder(_LoadReport)
_METRICS = msgspec.json.Decoder(list[_Metrics])
_NAMES = msgspec.json.Decoder(list[str])
_POLICIES = msgspec.json.Decoder(_Policies)
_ISOLATION = msgspec.json.Decoder(dict[str, _IsolationPolicy], strict=False)
_BROKER_TOPICS = msgspec.json.Decoder(dict[str, dict[str, dict[str, dict[str, msgspec.Raw]]]])


class AdminCluster:
    """A real cluster behind `ClusterPort`. All writes and nearly all reads need a super-user."""

    def __init__(self, transport: AdminTransport, *, is_preview: bool = False) -> None:
        """`is_preview`: all is read for one moment, and nothing is waited for (as a dry run of a finished drain does).

        So each broker's topics (up to tens of MB) are read once.
        """
        self._transport = transport
        self._read = ReadClient(transport)
        self._loaded = cache(self._read_loaded) if is_preview else self._read_loaded
        self._members_elsewhere = cache(self._read_members_elsewhere)
        self._lists_groups = True

    @cached_property
    def _configuration(self) -> dict[str, str]:
        runtime = self._read.runtime_configuration()
        kept = ("clusterName", "loadManagerClassName", *WEIGHT_KEYS)  # the rest may be secret
        return {key: runtime[key] for key in kept if key in runtime}

    @cached_property
    def _settings(self) -> LoadBalancerSettings:
        dynamic = self._read.dynamic_configuration()
        return resolve_settings(
            self.release(min(self.active_brokers())),
            {key: value for key, value in self._configuration.items() if key in WEIGHT_KEYS},
            {key: value for key, value in dynamic.items() if key in WEIGHT_KEYS},
        ).values

    def cluster_name(self) -> str:
        """Pulsar's own `clusterName`."""
        return self._configuration.get("clusterName", "")

    def load_manager(self) -> LoadManagerKind:
        """Which load manager the leader runs, or any broker. Raises `ClusterUnreachable` for an unsupported one."""
        if self._is_extensible:
            return "extensible"
        broker = self.leader() or min(self.active_brokers())
        report = decode(self._read.load_report(self._met(broker)), _LOAD_REPORT)
        if (kind := load_manager_kind(report.load_report_type, self._load_manager_class)) is None:
            name, known = simple_name(self._load_manager_class), ", ".join(LOAD_MANAGERS.values())
            raise ClusterUnreachable(
                f"the brokers run load manager '{name}', not one of {known}: nothing can be applied"
            )
        return kind

    @property
    def _load_manager_class(self) -> str:
        return self._configuration.get("loadManagerClassName", "")

    @property
    def _is_extensible(self) -> bool:
        """Whether brokers have metrics in place of a load report."""
        return load_manager_kind(None, self._load_manager_class) == "extensible"

    def unloading_timeout_s(self) -> float:
        """The greatest `namespaceBundleUnloadingTimeoutMs` of the active brokers (dynamic, so it may be overridden)."""
        return self._greatest("namespaceBundleUnloadingTimeoutMs") / 1000

    def reports_within_s(self) -> float:
        """How long a new owner may report no topics of a bundle: until its next statistics pass, or its first one.

        By the greatest interval and initial delay of the active brokers, which none changes without a restart.
        """
        return self._statistics_s

    @cached_property
    def _statistics_s(self) -> float:
        until_next = map(self._greatest, ("statsUpdateFrequencyInSecs", "statsUpdateInitialDelayInSecs"))
        return max(until_next) + _STATISTICS_PASS_S

    def _greatest(self, key: str) -> int:
        """The greatest value of a number in the settings of the active brokers, dynamic ones included."""
        configurations = [self._read.dynamic_configuration()]
        configurations += [self._read.runtime_configuration(self._met(broker)) for broker in self.active_brokers()]
        given = [configuration.get(key, "") for configuration in configurations]
        return max((int(value) for value in given if _NUMBER.fullmatch(value)), default=int(setting_value(key)))

    def active_brokers(self) -> frozenset[str]:
        """Ids of the currently registered brokers. Raises `ClusterUnreachable` for none."""
        return frozenset(some_active(self._read.active_brokers(self.cluster_name()), self.cluster_name()))

    def owned_bundles(self, broker: str) -> frozenset[str]:
        """Bundles that a broker reports as its own; empty if the cluster does not know the broker."""
        try:
            return frozenset(self._read.owned_bundles(self.cluster_name(), broker))
        except ErrorAnswer as error:
            if error.is_absence:
                return frozenset()
            raise

    def _met(self, broker: str) -> str:
        """The broker, once its web address is known: with https, only the broker itself reports it."""
        if self._transport.web_address(broker) is None:
            self.owned_bundles(broker)
        return broker

    def boundaries(self, namespace: str) -> tuple[str, ...]:
        """Current boundaries; empty if the namespace doesn't exist or is being deleted."""
        try:
            document = self._read.policies(namespace)
        except ErrorAnswer as error:
            if error.is_absence:
                return ()
            raise
        policies = decode(document, _POLICIES)
        if policies.deleted:
            return ()
        if policies.bundles is None:  # brokers always say them: a document of something else proves no absence
            raise unreadable(document, ValueError("no bundles in it"))
        return tuple(policies.bundles.boundaries)

    def loaded_topics(self, broker: str, namespace: str, bundle: str) -> tuple[str, ...]:
        """Topics of a bundle in a broker's topic statistics."""
        return self._loaded(broker).get(f"{namespace}/{bundle}", ())

    def reported_bundles(self, broker: str) -> frozenset[str]:
        """Bundles with topics in a broker's topic statistics."""
        return frozenset(bundle for bundle, topics in self._loaded(broker).items() if topics)

    def _read_loaded(self, broker: str) -> Mapping[str, tuple[str, ...]]:
        """Topics by bundle (full name), as of the broker's last statistics pass."""
        return {
            f"{namespace}/{bundle}": tuple(sorted(chain.from_iterable(domains.values())))
            for namespace, bundles in decode(self._read.broker_topics(self._met(broker)), _BROKER_TOPICS).items()
            for bundle, domains in bundles.items()
        }

    def may_have_topics(self, namespace: str, bundle: str) -> bool:
        """Whether a topic list has a topic of this bundle, or its namespace has scalable topics: no list has those."""
        if self.topics(namespace, bundle):
            return True
        try:
            return bool(self._read.scalable_topics(namespace))
        except ErrorAnswer as error:
            if error.status == 404:
                return False
            raise

    def topics(self, namespace: str, bundle: str) -> tuple[str, ...]:
        """Persistent topics of a bundle in the metadata, and loaded non-persistent ones.

        Partitions that are declared but were never created are missing, so the count may be too low, never too high.
        """
        lower, upper = parse_range(bundle)
        names = set(self._read.persistent_topics(namespace))
        path = f"/admin/v2/non-persistent/{escaped(namespace)}/{bundle}"
        answer = self._transport.get(path, limit_bytes=LARGEST_LISTING_BYTES)
        if self._transport.require(answer, 200, 204).status == 200:
            loaded: list[str] = decode(Document(answer.url, answer.body), _NAMES)
            names.update(loaded)
        return tuple(sorted(name for name in names if contains(lower, upper, topic_hash(name))))

    def isolation_policies(self) -> tuple[IsolationPolicy, ...]:
        """Namespace isolation policies in the order Pulsar returns them."""
        policies = decode(self._read.isolation_policies(self.cluster_name()), _ISOLATION)
        return tuple(
            IsolationPolicy(
                name=name,
                namespaces=tuple(policy.namespaces),
                primary=tuple(policy.primary),
                secondary=tuple(policy.secondary),
                min_limit=policy.auto_failover_policy.parameters.min_limit,
                usage_threshold=policy.auto_failover_policy.parameters.usage_threshold,
            )
            for name, policy in policies.items()
        )

    def anti_affinity_peers(self, namespace: str) -> frozenset[str]:
        """The other namespaces of the namespace's anti-affinity group, of any tenant: Pulsar spreads them all.

        Pulsar lists them for one tenant at a time. Those of other tenants, of which there may be thousands, are read
        once. Source: Pulsar `LoadManagerShared`.
        """
        group = self._read.anti_affinity_group(namespace)
        if group is None:
            return frozenset()
        tenant = namespace.partition("/")[0]
        return (self._members(group, tenant) | self._members_elsewhere(group, tenant)) - {namespace}

    def _read_members_elsewhere(self, group: str, tenant: str) -> frozenset[str]:
        """The namespaces of an anti-affinity group that belong to other tenants than this one."""
        others = (self._members(group, other) for other in self._read.tenants() if other != tenant)
        return frozenset(chain.from_iterable(others))

    def _members(self, group: str, tenant: str) -> frozenset[str]:
        """Each namespace is asked where brokers can't list a group: none can with authorization, which answer 500.

        Source: Pulsar `NamespacesBase.internalGetAntiAffinityNamespacesAsync` (2.11.0 to 5.0.1).
        """
        if self._lists_groups:
            path = f"/admin/v2/namespaces/{escaped(self.cluster_name())}/antiAffinity/{quote(group, safe='')}"
            answer = self._transport.get(path, params={"tenant": tenant})
            self._lists_groups = answer.status != 500
            if self._lists_groups:
                self._transport.require(answer, 200)
                members: list[str] = decode(Document(answer.url, answer.body), _NAMES)
                return frozenset(members)
        namespaces = self._read.namespaces(tenant)
        return frozenset(name for name in namespaces if self._read.anti_affinity_group(name) == group)

    def usage_ratio(self, broker: str) -> float | None:
        """Weighted maximum usage of a broker, from its load report or, under Extensible, its metrics."""
        resources = self._percents(broker) if self._is_extensible else self._resources(broker)
        if resources is None:
            return None
        columns: list[_Resource] = [getattr(resources, name) for name in _Resources.__struct_fields__]
        usage = np.array([[column.usage for column in columns]], dtype=float)
        limit = np.array([[column.limit for column in columns]], dtype=float)
        ratio = float(weighted_maximum(usage, limit, self._settings)[0])
        return ratio if math.isfinite(ratio) else None

    def _resources(self, broker: str) -> _Resources:
        report = decode(self._read.load_report(self._met(broker)), _LOAD_REPORT)
        return report if report.system_resource_usage is None else report.system_resource_usage

    def _percents(self, broker: str) -> _Resources | None:
        """None before the broker's first sample."""
        metrics = decode(self._read.broker_metrics(self._met(broker)), _METRICS)
        used = next((one.metrics for one in metrics if one.metrics.cpu is not None), None)
        return None if used is None else _Resources(*(_Resource(share or 0.0, 100.0) for share in astuple(used)))

    def leader(self) -> str | None:
        """Id of the leader; None while there is none."""
        return self._read.leader()

    def release(self, broker: str) -> str:
        """The release of Pulsar that an active broker runs."""
        return self._read.version(self._met(broker))

    def why_unhealthy(self, broker: str) -> str | None:
        """What a broker's own health check says, asked at its own address; None if it is healthy.

        The check writes a message and reads it, so the read client has no part in it.
        """
        try:
            address = self._transport.own_url(self._met(broker))
            answer = self._transport.get("/admin/v2/brokers/health", broker_url=address)
            own_answer(self._transport.require(answer, 200), broker)
            if answer.text.strip() != "ok":  # as Pulsar's own client wants it: a proxy has pages of its own
                raise UnreadableAnswer(answer.url, "expected ok, the answer of a healthy broker", answer.body)
        except AdvisorError as error:
            return str(error)
        return None

    def started_at_ms(self, broker: str) -> int | None:
        """When a broker's process started, by its own clock; None if it doesn't say, as under Extensible."""
        if self._is_extensible:
            return None
        return decode(self._read.load_report(self._met(broker)), _LOAD_REPORT).start_timestamp or None

    def publishes_within_s(self) -> float:
        """The longest time until a broker publishes its load again, even without a change."""
        key = "loadBalancerReportUpdateMaxIntervalMinutes"
        values = (self._read.dynamic_configuration().get(key), self._read.runtime_configuration().get(key))
        return 60 * float(next((value for value in values if value and _NUMBER.fullmatch(value)), setting_value(key)))

    def migrating(self) -> str | None:
        """The phase of a metadata store migration in progress, or None."""
        migration = self._read.migration()
        return plain(migration.phase) if migration is not None and migration.is_under_way else None

    def override(self, setting: str) -> str | None:
        """The override of a dynamic setting, or None; brokers ignore a blank one, so it is none."""
        text = self._read.dynamic_configuration().get(setting, "")
        return text if text.strip() else None

    def effective(self, setting: str) -> Mapping[str, str]:
        """The value of a setting in the memory of each active broker."""
        read = self._read.runtime_configuration
        return {broker: read(self._met(broker)).get(setting, "") for broker in sorted(self.active_brokers())}

    def send(self, write: Unload | Split | Override) -> Reply:
        """Send a call once, following the brokers' redirects; return what is known of its outcome.

        If the answer can't be understood, for whatever reason, the call may still have been carried out.
        """
        request = write.request
        try:
            answer = self._transport.request(
                request.method, escaped(request.path), params=request.query, json=request.body
            )
        except AdvisorError as error:
            return Reply(None, str(error))
        redirected, wait_s = answer.redirects > 0, answer.retry_after_s
        return Reply(answer.status, answer.reason, is_redirected=redirected, retry_after_s=wait_s)

    def look_up(self, topic: str) -> Reply:
        """Look up a topic as a client would."""
        try:
            answer = self._transport.request("GET", f"/lookup/v2/topic/{topic_path(topic)}")
        except ClusterUnreachable as error:
            return Reply(None, str(error))
        return Reply(answer.status, answer.reason)
