"""The parts of Pulsar's documents that a snapshot may hold; the types that decode them are the allow-list.

The decoder skips any field that isn't named here and never materialises it, in particular addresses, client ids,
properties and metadata of producers and consumers. Field names are Pulsar's. Absent fields stay absent.

Source: Pulsar `LocalBrokerData`, `LoadReport`, `NamespaceBundleStats`, `TopicStatsImpl` as written by
`PersistentTopic.updateRates`, `Policies`, `LocalPolicies`, `BundleData`, `TimeAverageBrokerData` (2.10 to 4.2).
"""

# ruff: noqa: N815 (the field names are the keys of the documents)

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pulsar_advisor.admin.decoding import Document, decode
from pulsar_advisor.admin.web_address import broker_at

# Jackson writes a non-finite number as quoted text.
Number = float | Literal["NaN", "Infinity", "-Infinity"] | None | UnsetType
# Java's `long`: Spark would treat a whole line with a greater number as unreadable.
Count = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None | UnsetType
Text = str | None | UnsetType
Flag = bool | None | UnsetType
Names = list[str] | None | UnsetType


class AllowList(msgspec.Struct, gc=False):
    """A reduced document; `UNSET` fields are omitted when it is written again."""


class ResourceUsage(AllowList):
    """Units per resource: percent points of one core, MiB, or kbit/s."""

    usage: Number = UNSET
    limit: Number = UNSET


class BundleStats(AllowList):
    """`NamespaceBundleStats`: messages/s and bytes/s of one bundle, summed over its loaded topics."""

    msgRateIn: Number = UNSET
    msgThroughputIn: Number = UNSET
    msgRateOut: Number = UNSET
    msgThroughputOut: Number = UNSET
    consumerCount: Count = UNSET
    producerCount: Count = UNSET
    topics: Count = UNSET
    cacheSize: Count = UNSET


class SystemResourceUsage(AllowList):
    """The five resources by which the Simple and the Extensible manager see a broker's load."""

    cpu: ResourceUsage | UnsetType = UNSET
    memory: ResourceUsage | UnsetType = UNSET
    directMemory: ResourceUsage | UnsetType = UNSET
    bandwidthIn: ResourceUsage | UnsetType = UNSET
    bandwidthOut: ResourceUsage | UnsetType = UNSET


class LoadReport(AllowList):
    """`LocalBrokerData` (Modular), `LoadReport` (Simple) and Extensible's look-up record in one type.

    `loadReportType` distinguishes the first two; under Extensible a broker's node has neither that field nor any load.
    """

    loadReportType: Text = UNSET
    loadManagerClassName: Text = UNSET
    brokerId: Text = UNSET
    brokerVersionString: Text = UNSET
    brokerVersion: Text = UNSET
    webServiceUrl: Text = UNSET
    webServiceUrlTls: Text = UNSET
    pulsarServiceUrl: Text = UNSET
    pulsarServiceUrlTls: Text = UNSET
    persistentTopicsEnabled: Flag = UNSET
    nonPersistentTopicsEnabled: Flag = UNSET
    startTimestamp: Count = UNSET
    lastUpdate: Count = UNSET
    numTopics: Count = UNSET
    numBundles: Count = UNSET
    numConsumers: Count = UNSET
    numProducers: Count = UNSET
    msgRateIn: Number = UNSET
    msgRateOut: Number = UNSET
    msgThroughputIn: Number = UNSET
    msgThroughputOut: Number = UNSET
    bundles: Names = UNSET
    # Modular
    cpu: ResourceUsage | UnsetType = UNSET
    memory: ResourceUsage | UnsetType = UNSET
    directMemory: ResourceUsage | UnsetType = UNSET
    bandwidthIn: ResourceUsage | UnsetType = UNSET
    bandwidthOut: ResourceUsage | UnsetType = UNSET
    maxResourceUsage: Number = UNSET
    lastStats: dict[str, BundleStats] | UnsetType | None = UNSET
    lastBundleGains: Names = UNSET
    lastBundleLosses: Names = UNSET
    # Simple
    name: Text = UNSET
    timestamp: Count = UNSET
    overLoaded: Flag = UNSET
    underLoaded: Flag = UNSET
    systemResourceUsage: SystemResourceUsage | UnsetType | None = UNSET
    bundleStats: dict[str, BundleStats] | UnsetType | None = UNSET
    bundleGains: Names = UNSET
    bundleLosses: Names = UNSET
    allocatedCPU: Number = UNSET
    allocatedMemory: Number = UNSET
    allocatedBandwidthIn: Number = UNSET
    allocatedBandwidthOut: Number = UNSET
    allocatedMsgRateIn: Number = UNSET
    allocatedMsgRateOut: Number = UNSET
    preAllocatedCPU: Number = UNSET
    preAllocatedMemory: Number = UNSET
    preAllocatedBandwidthIn: Number = UNSET
    preAllocatedBandwidthOut: Number = UNSET
    preAllocatedMsgRateIn: Number = UNSET
    preAllocatedMsgRateOut: Number = UNSET


class MetricDimensions(AllowList):
    """Distinguishes metrics of the same name."""

    feature: Text = UNSET


class UsageMetrics(AllowList):
    """The Extensible manager's five resources, in percent, in the order of RESOURCES."""

    brk_lb_cpu_usage: Number = UNSET
    brk_lb_memory_usage: Number = UNSET
    brk_lb_directMemory_usage: Number = UNSET
    brk_lb_bandwidth_in_usage: Number = UNSET
    brk_lb_bandwidth_out_usage: Number = UNSET


class LoadMetrics(UsageMetrics):
    """Metrics of the Extensible manager's `BrokerLoadData`."""

    brk_lb_resource_usage: Number = UNSET
    """Ratio."""


class Metrics(AllowList):
    """One entry of `broker-stats/metrics`; its `dimensions.broker` lacks the port, so the call identifies it."""

    dimensions: MetricDimensions = msgspec.field(default_factory=MetricDimensions)
    metrics: LoadMetrics = msgspec.field(default_factory=LoadMetrics)


class BrokerMetrics(UsageMetrics):
    """The load metrics of one broker combined; `max` and `max_ema` are the two features of `brk_lb_resource_usage`."""

    max: Number = UNSET
    """Unweighted maximum of the last sample, ratio."""
    max_ema: Number = UNSET
    """Smoothed weighted maximum, ratio."""


class ConsumerStats(AllowList):
    """One consumer, which only counts."""


class SubscriptionStats(AllowList):
    """The consumers of one subscription."""

    consumers: list[ConsumerStats] | UnsetType = UNSET


class TopicStats(AllowList):
    """One loaded topic in `broker-stats/topics`: messages/s, bytes/s, bytes.

    Nothing else is kept: there is a line for every topic of the cluster, and the figures of each producer, consumer and
    subscription would more than double it.
    """

    subscriptions: dict[str, SubscriptionStats] | UnsetType = UNSET
    producerCount: Count = UNSET
    msgRateIn: Number = UNSET
    msgRateOut: Number = UNSET
    msgThroughputIn: Number = UNSET
    msgThroughputOut: Number = UNSET
    storageSize: Count = UNSET


class TopicLine(msgspec.Struct, gc=False):
    """One line of `topic_stats`."""

    broker: str
    namespace: str
    range: str
    domain: str
    topic: str
    stats: TopicStats


class BundlesData(AllowList):
    """Boundaries of a namespace's bundles, as `0x%08x`."""

    boundaries: list[str] | UnsetType = UNSET
    numBundles: Count = UNSET


class Policies(AllowList):
    """The part of a namespace's policies that placement and splitting use."""

    bundles: BundlesData | UnsetType | None = UNSET
    deleted: Flag = UNSET
    migrated: Flag = UNSET
    replication_clusters: Names = UNSET
    allowed_clusters: Names = UNSET
    resource_group_name: Text = UNSET
    max_topics_per_namespace: Count = UNSET
    antiAffinityGroup: Text = UNSET

    def are_served_by(self, cluster_name: str) -> bool:
        """Whether this cluster serves the namespace; assumed if the policies don't say.

        Source: Pulsar `PulsarWebResource.checkLocalOrGetPeerReplicationCluster` (2.10 to 4.2).
        """
        named = [names for names in (self.replication_clusters, self.allowed_clusters) if isinstance(names, list)]
        return not named or any(cluster_name in names for names in named)


class LocalPolicies(AllowList):
    """A namespace's policies in this cluster only, which are authoritative for its boundaries."""

    bundles: BundlesData | UnsetType | None = UNSET
    namespaceAntiAffinityGroup: Text = UNSET
    migrated: Flag = UNSET


class AutoFailoverParameters(AllowList):
    """Numbers as text, as Pulsar stores them."""

    min_limit: Text = UNSET
    usage_threshold: Text = UNSET


class AutoFailoverPolicy(AllowList):
    """The condition for using secondary brokers."""

    policy_type: Text = UNSET
    parameters: AutoFailoverParameters | UnsetType | None = UNSET


class IsolationPolicy(AllowList):
    """Which brokers (regular expressions on hosts) serve which namespaces (regular expressions on names)."""

    namespaces: Names = UNSET
    primary: Names = UNSET
    secondary: Names = UNSET
    auto_failover_policy: AutoFailoverPolicy | UnsetType | None = UNSET
    unload_scope: Text = UNSET


class TimeAverage(AllowList):
    """`TimeAverageMessageData`."""

    maxSamples: Count = UNSET
    numSamples: Count = UNSET
    msgThroughputIn: Number = UNSET
    msgThroughputOut: Number = UNSET
    msgRateIn: Number = UNSET
    msgRateOut: Number = UNSET


class BundleData(AllowList):
    """The leader's averages of one bundle."""

    shortTermData: TimeAverage | UnsetType | None = UNSET
    longTermData: TimeAverage | UnsetType | None = UNSET
    topics: Count = UNSET


class BrokerTimeAverage(AllowList):
    """The leader's averages of one broker."""

    shortTermMsgThroughputIn: Number = UNSET
    shortTermMsgThroughputOut: Number = UNSET
    shortTermMsgRateIn: Number = UNSET
    shortTermMsgRateOut: Number = UNSET
    longTermMsgThroughputIn: Number = UNSET
    longTermMsgThroughputOut: Number = UNSET
    longTermMsgRateIn: Number = UNSET
    longTermMsgRateOut: Number = UNSET


class ResourceQuota(AllowList):
    """The assumed resource needs of a bundle: messages/s, bytes/s, MB; `dynamic` if the manager may revise them."""

    msgRateIn: Number = UNSET
    msgRateOut: Number = UNSET
    bandwidthIn: Number = UNSET
    bandwidthOut: Number = UNSET
    memory: Number = UNSET
    dynamic: Flag = UNSET


class OwnershipNode(AllowList):
    """`NamespaceEphemeralData`: who owns a bundle."""

    brokerId: Text = UNSET
    httpUrl: Text = UNSET
    httpUrlTls: Text = UNSET
    disabled: Flag = UNSET

    def __post_init__(self) -> None:
        """Refuse a node that doesn't name its owner by a broker's URL."""
        _ = self.owner

    @property
    def owner(self) -> str | None:
        """Id of the owning broker; up to 4.2 the node has only its URL."""
        return self.brokerId or broker_at(self.httpUrl or self.httpUrlTls or "")


LOAD_REPORT: Final = msgspec.json.Decoder(LoadReport)
METRICS: Final = msgspec.json.Decoder(list[Metrics])
POLICIES: Final = msgspec.json.Decoder(Policies)
LOCAL_POLICIES: Final = msgspec.json.Decoder(LocalPolicies)
ISOLATION_POLICIES: Final = msgspec.json.Decoder(dict[str, IsolationPolicy])
BUNDLE_DATA: Final = msgspec.json.Decoder(BundleData)
BROKER_TIME_AVERAGE: Final = msgspec.json.Decoder(BrokerTimeAverage)
RESOURCE_QUOTA: Final = msgspec.json.Decoder(ResourceQuota)
OWNERSHIP_NODE: Final = msgspec.json.Decoder(OwnershipNode)


def broker_metrics(document: Document) -> BrokerMetrics:
    """The load in a broker's `broker-stats/metrics`. Raises `UnreadableAnswer`."""
    merged = BrokerMetrics()
    for entry in decode(document, METRICS):
        for field in UsageMetrics.__struct_fields__:
            if (usage := getattr(entry.metrics, field)) is not UNSET:
                setattr(merged, field, usage)
        if (feature := entry.dimensions.feature) in ("max", "max_ema"):
            setattr(merged, feature, entry.metrics.brk_lb_resource_usage)
    return merged


class _LeaderCounts(AllowList):
    brk_lb_cpu_usage: Number = UNSET
    brk_lb_unload_bundle_total: Count = UNSET


class _LeaderMetrics(AllowList):
    metrics: _LeaderCounts = msgspec.field(default_factory=_LeaderCounts)


_LEADER_METRICS: Final = msgspec.json.Decoder(list[_LeaderMetrics])


def unloads_of_leader(document: Document) -> int | None:
    """How many bundles a Modular leader has unloaded since it started, from its `broker-stats/metrics`.

    0 if it has only its usage there, as before its first shedding cycle ends. None if it has neither.
    Source: `ModularLoadManagerImpl.getLoadBalancingMetrics`, `updateBundleUnloadingMetrics` (2.11.0 to 4.0.8).
    Raises `UnreadableAnswer`.
    """
    entries = [entry.metrics for entry in decode(document, _LEADER_METRICS)]
    counts = (entry.brk_lb_unload_bundle_total for entry in entries)
    has_load = any(entry.brk_lb_cpu_usage is not UNSET for entry in entries)
    return next((count for count in counts if count is not UNSET), 0 if has_load else None)


_BROKER_TOPICS = msgspec.json.Decoder(dict[str, dict[str, msgspec.Raw]])
_BUNDLE_TOPICS = msgspec.json.Decoder(dict[str, dict[str, TopicStats]])


def topic_lines(broker: str, document: Document) -> Iterator[list[TopicLine]]:
    """The lines of one broker's `broker-stats/topics`, bundle by bundle.

    The document is cut into bundles first, so that memory holds its bytes and the objects of only one bundle.
    Raises `UnreadableAnswer`, possibly after some bundles.
    """
    namespaces = decode(document, _BROKER_TOPICS)
    for namespace, bundles in namespaces.items():
        for bundle_range, raw in bundles.items():
            domains = decode(document, _BUNDLE_TOPICS, raw)
            yield [
                TopicLine(broker, namespace, bundle_range, domain, topic, stats)
                for domain, topics in domains.items()
                for topic, stats in topics.items()
            ]
