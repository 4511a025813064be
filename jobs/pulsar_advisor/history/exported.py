"""What brokers export to Prometheus, by metric and label, and the queries that retrieve it.

Source: Pulsar `NamespaceStatsAggregator`, `TopicStats` (stats.prometheus), `ModularLoadManagerImpl` (2.10 to 5.0), and
`/metrics` of live 4.0.8 brokers. Rates are from the last statistics pass, at most a minute old.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.some_of import nearest

HOST_METRICS: Final = {
    "cpu_usage": "pulsar_lb_cpu_usage",
    "memory_usage": "pulsar_lb_memory_usage",
    "direct_memory_usage": "pulsar_lb_directMemory_usage",
    "bandwidth_in_usage": "pulsar_lb_bandwidth_in_usage",
    "bandwidth_out_usage": "pulsar_lb_bandwidth_out_usage",
}
"""Column of `columns.HOSTS` -> metric, in percent of the limit."""
STARTED: Final = "process_start_time_seconds"
VERSION: Final = "pulsar_version_info"
VERSION_LABEL: Final = "version"
JOB: Final = "job"
"""Label that, together with an instance, identifies the process on a host that was scraped."""

_REPLACED: Final = "exported_"
"""Prefix of an exported label whose name the target's own label took, unless the scrape honours labels."""
_LONGEST_PATTERN: Final = 3_000
"""Maximum characters of a pattern: proxies refuse addresses of more than 8,000 characters."""


@dataclass(frozen=True)
class Labels:
    """The names of labels on this server."""

    cluster: str = "cluster"
    namespace: str = "namespace"
    topic: str = "topic"
    partition: str = "partition"
    """A topic's partition, if brokers split it off (`splitTopicAndPartitionLabelInPrometheus`)."""
    bundle: str = "bundle"
    instance: str = "instance"

    def replaced(self, seen: Collection[str]) -> Labels:
        """These, with the names that Prometheus gave to exported labels whose own names the target's took."""
        exported = {name: f"{_REPLACED}{own}" for name, own in vars(self).items() if name != "instance"}
        return replace(self, **{name: label for name, label in exported.items() if label in seen})


def labels_of(given: Sequence[str]) -> Labels:
    """Labels by `OURS=THEIRS`, for example `instance=pod`. Raises `UsageError`."""
    names: dict[str, str] = {}
    for text in given:
        ours, _, theirs = text.partition("=")
        if ours not in vars(Labels()):
            raise UsageError(f"--label {text}: '{ours}' is not a known label{nearest(ours, vars(Labels()))}")
        if not re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", theirs):
            raise UsageError(f"--label {text}: '{theirs}' is not a valid label name; give for example instance=pod")
        names[ours] = theirs
    return Labels(**names)


@dataclass(frozen=True)
class Level:
    """The level of exported figures: per topic, per bundle, or per namespace."""

    name: str
    metrics: tuple[str, ...]
    """In the order of `scraped.FIGURES`."""

    def subject_label(self, labels: Labels) -> str:
        """The label that names a series' topic, bundle or namespace."""
        return {"topic": labels.topic, "bundle": labels.bundle, "namespace": labels.namespace}[self.name]

    def matchers(self, labels: Labels) -> str:
        """Matchers that select the series of this level from others of the same metric."""
        return {"topic": f'{labels.topic}!=""', "bundle": f'{labels.bundle}!=""', "namespace": f'{labels.topic}=""'}[
            self.name
        ]


def topic_of(topic: str, partition: str) -> str:
    """The complete name of a topic whose partition may be a separate label: `-1` for none, or even `0-orders-RETRY`."""
    return f"{topic}-partition-{partition}" if partition[:1].isdigit() else topic


_OF_TOPICS: Final = ("rate_in", "rate_out", "throughput_in", "throughput_out", "producers_count", "consumers_count")
_OF_BUNDLES: Final = (
    *("msg_rate_in", "msg_rate_out", "msg_throughput_in", "msg_throughput_out"),
    *("producer_count", "consumer_count"),
)
TOPICS: Final = Level("topic", tuple(f"pulsar_{name}" for name in _OF_TOPICS))
BUNDLES: Final = Level("bundle", tuple(f"pulsar_bundle_{name}" for name in _OF_BUNDLES))
NAMESPACES: Final = Level("namespace", TOPICS.metrics)
LEVELS: Final = (TOPICS, BUNDLES, NAMESPACES)
"""Best first."""


def selector(metric: str, labels: Labels, cluster: str, *more: str) -> str:
    """The PromQL selector of a metric for a cluster."""
    return f"{metric}{{{','.join((f'{labels.cluster}={quoted(cluster)}', *more))}}}"


def of_namespaces(level: Level, labels: Labels, namespaces: Iterable[str]) -> str:
    """The matcher for series of these namespaces."""
    pattern = "|".join(re.escape(name) for name in namespaces)
    if level is BUNDLES:
        return f"{labels.bundle}=~{quoted(f'({pattern})/0x[^/]*')}"
    return f"{labels.namespace}=~{quoted(pattern)}"


def quoted(text: str) -> str:
    """The text as a PromQL string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def groups(series: Mapping[str, int], most: int) -> Iterator[tuple[str, ...]]:
    """Namespaces in the order of their bundles' names, grouped up to `most` series."""
    group: list[str] = []
    number, characters = 0, 0
    for namespace in sorted(series, key=lambda name: f"{name}/"):
        number, characters = number + series[namespace], characters + 2 * len(namespace)
        if group and (number > most or characters > _LONGEST_PATTERN):
            yield tuple(group)
            group, number, characters = [], series[namespace], 2 * len(namespace)
        group.append(namespace)
    if group:
        yield tuple(group)


def broker_of(instance: str, ids: Iterable[str]) -> str:
    """The broker id (`host:port`) of a scrape's instance, pod or host: the id with the same name, the same host, or the
    same host without its domain; the instance itself if none or several match."""
    known = tuple(ids)
    if instance in known:
        return instance
    for part in (_host, _first_name):
        found = [id for id in known if part(id) == part(instance)]
        if len(found) == 1:
            return found[0]
    return instance


def _host(name: str) -> str:
    host, colon, port = name.rpartition(":")
    return host.lower() if colon and port.isdigit() else name.lower()


def _first_name(name: str) -> str:
    host = _host(name)
    return host if re.fullmatch(r"[0-9.]+|.*[\[:].*", host) else host.partition(".")[0]
