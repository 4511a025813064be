"""The tables of a snapshot: every column with its type, unit, meaning and source (`docs/tables.md` shows them)."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.tables.columns import RESOURCES, Column, Table, required, traffic

_UNITS: Final = {
    "cpu": "percent points of one core",
    "memory": "MiB of JVM heap",
    "directMemory": "MiB",
    "bandwidthIn": "kbit/s",
    "bandwidthOut": "kbit/s",
}

_VIEW = required(
    "view",
    "string",
    "`fresh`: figures of the brokers' REST answers; `published`: of the reports in ZooKeeper (leader's view), "
    "which Extensible brokers don't write",
)
_KIND = required("kind", "string", "`user`, `system` (`pulsar/system`), `heartbeat` or `sla_monitor`; by name")

BROKERS: Final = Table(
    "brokers",
    "one broker in one view",
    ("view", "broker"),
    (
        _VIEW,
        required("broker", "string", "broker id, `host:port`; surface brokers, or whoever reported"),
        Column("web_service_url", "string", "surface brokers, else the report's `webServiceUrl`"),
        Column("reported_web_service_url", "string", "the report's `webServiceUrl`"),
        Column("version", "string", "surface brokers, else the report's `brokerVersionString`"),
        Column(
            "load_manager_class_name", "string", "report `loadManagerClassName` (3.0 and later), else runtime setting"
        ),
        required("is_leader", "boolean", "the manifest's `leader`: REST before ZooKeeper"),
        required("available", "boolean", "registered as active; surface brokers"),
        required("complete", "boolean", "false where the manifest names the broker as incomplete or it has no report"),
        Column("failure_domain", "string", "surface failure_domains; null in none"),
        required("reported", "boolean", "whether this view has a load report of the broker"),
        Column(
            "report_source",
            "string",
            "`load_report`, or `metrics`: Extensible brokers have no report, so usage is that of "
            "`broker-stats/metrics`, in percent of a limit of 100; traffic and counts are sums over topic statistics; "
            "`broker_load_data`: what the broker published to its leader (published view of Extensible)",
        ),
        Column(
            "report_updated_at_ms",
            "bigint",
            "epoch ms; report `lastUpdate` (Modular), `timestamp` (Simple); metrics carry no time: when they were read",
        ),
        Column("report_read_at_ms", "bigint", "epoch ms; when capture read the report"),
        Column(
            "report_written_at_ms", "bigint", "epoch ms by ZooKeeper's clock; when the report's node was last written"
        ),
        Column(
            "report_writes",
            "bigint",
            "how often the report's node was written since the broker registered; version of the node",
        ),
        Column(
            "clock_ahead_ms",
            "bigint",
            "ms that the broker's clock is certainly ahead of the capturing machine's (negative: behind; 0: may be the "
            "same), by the `Date` of its answer; null if the response has none; surface brokers",
        ),
        Column("start_timestamp_ms", "bigint", "epoch ms; report `startTimestamp` (3.0 and later, not Simple)"),
        *(
            Column(f"{resource}_{side}", "double", f"{_UNITS[field]} (metrics: percent); report `{field}.{side}`")
            for field, resource in RESOURCES.items()
            for side in ("usage", "limit")
        ),
        Column(
            "weighted_max_ema_ratio",
            "double",
            "0..1, smoothed weighted maximum usage (Extensible); fresh: metric `brk_lb_resource_usage`, feature "
            "`max_ema`; published: `weightedMaxEMA` as published",
        ),
        Column(
            "msg_throughput_ema_bytes_per_s", "double", "bytes/s in and out, smoothed; `msgThroughputEMA` as published"
        ),
        Column(
            "publishes_every_ms",
            "bigint",
            "milliseconds between the messages in which an Extensible broker published its load, as far as the capture "
            "heard them; null if none were heard",
        ),
        *traffic("", "the report's total (Simple's throughput: summed over its `bundleStats`);"),
        Column("topics", "bigint", "loaded topics; report `numTopics`"),
        Column("bundles", "bigint", "report `numBundles`; metrics: bundles the broker says it owns"),
        Column("producers", "bigint", "report `numProducers`"),
        Column("consumers", "bigint", "report `numConsumers`"),
        required("listed_bundles", "bigint", "bundles the report lists; metrics: ownedNamespaces"),
        required(
            "bundles_with_figures",
            "bigint",
            "length of the report's `lastStats` (Modular), `bundleStats` (Simple); metrics: of the topic statistics",
        ),
        required("owned_bundles", "bigint", "bundles the broker owns at the end of the capture; see bundles.owner"),
        Column("persistent_topics_enabled", "boolean", "report `persistentTopicsEnabled`"),
        Column("non_persistent_topics_enabled", "boolean", "report `nonPersistentTopicsEnabled`"),
        *traffic("stored_short_term_", "sum over the broker's bundles of short-term averages, broker_time_averages"),
        *traffic("stored_long_term_", "sum over the broker's bundles of long-term averages, broker_time_averages"),
        Column("stored_averages_modified_at_ms", "bigint", "epoch ms; when the leader last wrote those sums"),
    ),
)

BUNDLES: Final = Table(
    "bundles",
    "one bundle range in one view: every range of the boundaries, and every other one that is owned or has figures",
    ("view", "bundle"),
    (
        _VIEW,
        required("bundle", "string", "`tenant/namespace/0x........_0x........`"),
        required("namespace", "string", "everything before the last slash"),
        required("lower", "bigint", "lower bound of the hash range, inclusive"),
        required("upper", "bigint", "upper bound, exclusive but for 0xffffffff"),
        _KIND,
        required(
            "in_boundaries",
            "boolean",
            "whether the range is one of the namespace's; that of a heartbeat or SLA namespace is the full one",
        ),
        Column("owner", "string", "broker id; `/namespace` nodes first, else ownedNamespaces; null: unowned"),
        Column("owner_source", "string", "`zookeeper` or `rest`; null: unowned"),
        Column("owner_in_zookeeper", "string", "broker id of the `/namespace` node, end pass"),
        required(
            "claimed_by",
            "array<string>",
            "brokers that list the bundle in ownedNamespaces, sorted; end pass, without nodes each broker's last",
        ),
        required("is_active", "boolean", "false while the bundle is being unloaded: its owner's entry is disabled"),
        required("moved", "boolean", "owner changed between begin and end of the capture"),
        required(
            "listed",
            "boolean",
            "whether the owner's report lists the bundle: `bundles`, Simple `bundleStats`; metrics: always",
        ),
        required("reported", "boolean", "whether some broker's report has figures of it"),
        required("reported_by", "array<string>", "brokers whose reports have figures of it; sorted"),
        Column("figures_broker", "string", "whose figures these are: the owner's, else the latest reporting broker's"),
        *traffic("", "report"),
        Column("topics", "bigint", "loaded topics; report `topics`"),
        Column("producers", "bigint", "report `producerCount`"),
        Column("consumers", "bigint", "report `consumerCount`"),
        Column("cache_size_bytes", "bigint", "report `cacheSize`"),
        Column(
            "top_bundle_position",
            "bigint",
            "position among the top bundles that its owner published, 0 is the lightest; published view of Extensible",
        ),
        Column("channel_state", "string", "state in the Extensible manager's ownership channel: `Owned`, `Free`, …"),
        Column("channel_owner", "string", "broker id; who owns it by that channel, or is about to"),
        *traffic("short_term_", "average over at most 10 samples of"),
        required("short_term_samples", "bigint", "samples in the short average"),
        *traffic("long_term_", "average over at most 1000 samples of"),
        required("long_term_samples", "bigint", "samples in the long average"),
        required(
            "averages_origin",
            "string",
            "`bundle_data`: the leader's node, at most two write intervals old, range still a boundary, brought up to "
            "the load reports written since; `folded`: the averages of the snapshot before, brought up likewise, or, "
            "without load reports in ZooKeeper, with this one's figures as one more sample; `one_sample`: this "
            "snapshot's figures; `default`: Pulsar's figures for a bundle that no broker reported",
        ),
        required(
            "averages_folded_samples",
            "bigint",
            "samples folded into the averages since the leader's node was written: one for each load report since, by "
            "any broker, as Pulsar does; `folded`: since the snapshot before. Without the unknown samples",
        ),
        required(
            "averages_unknown_samples",
            "bigint",
            "further samples, of reports that later ones replaced before a snapshot showed them: folded with the mean "
            "of the figures before and after, without a snapshot before with those after",
        ),
        Column("bundle_data_modified_at_ms", "bigint", "epoch ms; when the leader last wrote the bundle's node"),
        Column(
            "last_unloaded_at_ms", "bigint", "epoch ms; the latest moment at which the last known unload can have been"
        ),
        Column(
            "last_unloaded_origin",
            "string",
            "how that moment is known: `owner_acquired`: when its owner acquired it from another broker (without a "
            "snapshot before: or as the first), by the node in ZooKeeper or the ownership channel; `report_losses`: "
            "named in the `lastBundleLosses` of a report (of "
            "one in ZooKeeper: when it was written; of an answer: when it was read); `report_gains`: likewise the gain "
            "of a bundle that is known to have had an owner before; `owner_changed`: not the owner of the snapshot "
            "before, at the latest when this capture began; `moved_in_capture`: owner changed during the capture",
        ),
    ),
)

TOPICS: Final = Table(
    "topics",
    "one topic that exists by name or is loaded: partitions, not parents; system topics included",
    ("topic",),
    (
        required("topic", "string", "complete name, `domain://tenant/namespace/local name`"),
        required("namespace", "string", "`tenant/namespace`"),
        required("domain", "string", "`persistent`, `non-persistent` or `segment`; of the complete name"),
        required("hash", "bigint", "CRC-32 of the UTF-8 bytes of the complete name, unsigned"),
        Column("lower", "bigint", "lower bound of the boundary range that holds the hash; null: no range does"),
        Column("upper", "bigint", "its upper bound"),
        required("named", "boolean", "whether lists of topics, partition counts or a scalable topic's layout name it"),
        required("loaded", "boolean", "whether some broker's topic statistics have it"),
        Column("broker", "string", "whose statistics: the owner's if it has some; null: not loaded"),
        Column("reported_range", "string", "range under which the broker reported the topic"),
        required("reports", "bigint", "number of statistics of it, by broker and range"),
        *traffic("", "topic statistics (three decimals)"),
        Column("producers", "bigint", "topic statistics `producerCount`"),
        Column("storage_size_bytes", "bigint", "topic statistics `storageSize`"),
        Column("scalable_topic", "string", "complete name, `topic://…`, of the topic whose segment it is; null: none"),
        Column("segment_id", "bigint", "`segmentId`, which is never given to another segment of its topic"),
        Column("segment_state", "string", "`ACTIVE`, or `SEALED`: it is read to its end, and then removed"),
        Column("segment_parents", "array<bigint>", "ids of the segments that it was split or merged from"),
        Column("segment_children", "array<bigint>", "ids of those that it was split or merged into"),
        *(
            Column(f"controller_{column.name}", column.type, column.comment)
            for column in traffic("", "as its topic's controller knows it, from the metadata store; topic statistics")
        ),
        Column("controller_load_modified_at_ms", "bigint", "epoch ms; when that load was last written"),
    ),
)

NAMESPACES: Final = Table(
    "namespaces",
    "one namespace; heartbeat and SLA namespaces only where a bundle of theirs was seen",
    ("namespace",),
    (
        required("namespace", "string", "`tenant/namespace`, or `tenant/cluster/namespace` up to 4.1"),
        _KIND,
        required("listed", "boolean", "whether the admin API listed it"),
        required("deleted", "boolean", "policies `deleted`: being deleted, no bundle is in its boundaries"),
        required(
            "migrated", "boolean", "policies or local policies `migrated`: its clients are sent to another cluster"
        ),
        Column("anti_affinity_group", "string", "local policies, else the admin API"),
        Column("boundaries", "array<bigint>", "ascending bounds of the ranges, as given"),
        Column(
            "boundaries_origin",
            "string",
            "`local_policies` (ZooKeeper), `policies` (REST) or `implied` (one full range)",
        ),
        required(
            "boundaries_agree",
            "boolean",
            "false where ZooKeeper and REST gave different boundaries: a split in progress",
        ),
        Column("declared_bundles", "bigint", "the document's own `numBundles`"),
        Column("local_policies_version", "bigint", "node version: the compare-and-set token of a split"),
        Column("replication_clusters", "array<string>", "policies `replication_clusters`"),
    ),
)

POLICIES: Final = Table(
    "policies",
    "one namespace isolation policy",
    ("name",),
    (
        required("position", "bigint", "Pulsar's order: the first match wins"),
        required("name", "string", "name of the policy"),
        required("namespaces", "array<string>", "regular expressions, matched against whole namespace names"),
        required("primary", "array<string>", "regular expressions, matched against whole host names without port"),
        required("secondary", "array<string>", "as primary"),
        Column("policy_type", "string", "`auto_failover_policy.policy_type`"),
        Column("min_limit", "int", "brokers; `parameters.min_limit`"),
        Column("usage_threshold_percent", "int", "percent; `parameters.usage_threshold`"),
        Column("unload_scope", "string", "`unload_scope` (4.0 and later)"),
    ),
)

SETTINGS: Final = Table(
    "settings",
    "one configuration value",
    ("origin", "broker", "key"),
    (
        required("origin", "string", "`runtime` (of a broker) or `dynamic` (metadata store)"),
        Column("broker", "string", "broker id; null for dynamic values"),
        required("key", "string", "Pulsar's key name"),
        Column("value", "string", "text from Pulsar; empty if Pulsar has null"),
    ),
)

DOCUMENTS: Final = Table(
    "documents",
    "one raw file: where the rows of the other tables come from",
    ("path",),
    (
        required("path", "string", "relative to the raw snapshot's folder"),
        required("surface", "string", "what was read; see formats"),
        Column("broker", "string", "broker id, where the file is one broker's"),
        required("bytes", "bigint", "size of the file, compressed"),
        required("sha256", "string", "of the file, verified before use"),
        required("rows", "bigint", "lines, as the manifest counts them; all were read"),
        required("unreadable_rows", "bigint", "lines that became rows of `problems`"),
        Column("read_started_at_ms", "bigint", "when the first read of what it holds began"),
        Column("read_finished_at_ms", "bigint", "when the last of those reads ended"),
    ),
)

PROBLEMS: Final = Table(
    "problems",
    "something that was captured, or should have been, and is in no other table",
    (),
    (
        required(
            "problem",
            "string",
            "`unreadable_line`, `bad_name`, `bad_boundaries`; from the manifest `failure`, `missing`, `not_available`: "
            "this release or load manager doesn't have it, so nothing is wrong",
        ),
        required("surface", "string", "what was read; see formats"),
        Column("path", "string", "raw file, relative to the raw snapshot's folder"),
        Column("broker", "string", "broker id, where one is concerned"),
        required("detail", "string", "the line or value cut to 500 characters, or the reason"),
    ),
)

TABLES: Final = (BROKERS, BUNDLES, TOPICS, NAMESPACES, POLICIES, SETTINGS, DOCUMENTS, PROBLEMS)

CHECKS: Final = Table(
    "checks",
    "one check; all snapshots together are the history of quality",
    ("check",),
    (
        required("check", "string", "`<table>.<code>`, see checks.md"),
        required("severity", "string", "`critical`, `warning` or `info`, as it counted in this snapshot"),
        required("success", "boolean", "false also where the check could not be evaluated"),
        required("failed_rows", "bigint", "rows that failed; 1 for a statement about a table as a whole"),
        required("evaluated", "boolean", "false where the check could not be evaluated"),
    ),
)
"""What `validate` writes: its result as a table."""
