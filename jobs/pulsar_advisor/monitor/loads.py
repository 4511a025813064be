"""`brokers`: what `pulsar-perf monitor-brokers` shows, from a raw snapshot or from the cluster as it is now.

Reports come from the brokers' nodes in ZooKeeper, as in the original, or without ZooKeeper from the brokers themselves.
Under Extensible the nodes hold no load: rates are sums over `broker-stats/topics`, usage comes from
`broker-stats/metrics`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final, TypeVar

import msgspec
import numpy as np
from zstandard import ZstdError

from pulsar_advisor.admin.decoding import decode
from pulsar_advisor.admin.metadata_store import Node, connected
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.read_client import ReadClient
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.capture.documents import (
    BROKER_TIME_AVERAGE,
    LOAD_REPORT,
    BrokerMetrics,
    BrokerTimeAverage,
    LoadReport,
    TopicLine,
    UsageMetrics,
    broker_metrics,
    topic_lines,
)
from pulsar_advisor.capture.journal import now_ms
from pulsar_advisor.capture.raw_files import read_lines
from pulsar_advisor.capture.session import identify
from pulsar_advisor.documents.broker_tables import PlannedUsage
from pulsar_advisor.documents.manifest import File, Manifest
from pulsar_advisor.model.bounds import WATCH
from pulsar_advisor.model.cluster.cluster_state import FIGURES, RESOURCES, ClusterState, LoadManagerKind
from pulsar_advisor.model.configuration.class_names import load_manager_kind
from pulsar_advisor.model.configuration.settings import LoadBalancerSettings
from pulsar_advisor.model.errors import ClusterUnreachable, DataNotFit
from pulsar_advisor.model.load.resource_usage import usage_ratios, weights_of_resources
from pulsar_advisor.monitor.tables import BrokerLoad, ClusterLoad, Report
from pulsar_advisor.planning.usage.forecast import finite

T = TypeVar("T")


class _ReportLine(msgspec.Struct):
    source: str
    broker: str
    document: LoadReport


class _AveragesLine(msgspec.Struct):
    broker: str
    document: BrokerTimeAverage


class _MetricsLine(msgspec.Struct):
    broker: str
    document: BrokerMetrics


_REPORTS: Final = msgspec.json.Decoder(_ReportLine)
_AVERAGES: Final = msgspec.json.Decoder(_AveragesLine)
_METRICS: Final = msgspec.json.Decoder(_MetricsLine)
_TOPICS: Final = msgspec.json.Decoder(TopicLine)


def load_in_snapshot(cluster: str, manifest: Manifest, content: Callable[[File], bytes]) -> ClusterLoad:
    """The brokers' load in a raw snapshot; `content` has the bytes of one of its files.

    Raises `DataNotFit` if it comes from an archive with lines that no capture writes.
    """

    def lines(surface: str, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
        for file in manifest.files:
            if file.surface == surface:
                packed = content(file)
                try:
                    yield from map(decoder.decode, read_lines(packed))
                except (msgspec.MsgspecError, ZstdError, ValueError, RecursionError) as error:
                    raise DataNotFit(
                        f"snapshot {manifest.snapshot}: {file.path} has content that no capture writes ({error}): "
                        "don't use this snapshot"
                    ) from error

    reports: dict[str, Report] = {}
    published: dict[str, Report] = {}
    for line in lines("load_reports", _REPORTS):
        (published if line.source == "zookeeper" else reports)[line.broker] = msgspec.to_builtins(line.document)
    reports |= published
    averages = {line.broker: msgspec.to_builtins(line.document) for line in lines("broker_time_averages", _AVERAGES)}
    managers = manifest.load_managers
    if "extensible" in managers.values():
        sums = _sums_by_broker(lines("topic_stats", _TOPICS))
        metrics = {line.broker: msgspec.to_builtins(line.document) for line in lines("broker_metrics", _METRICS)}
        answered = {file.broker for file in manifest.files if file.surface == "topic_stats"}
        for broker in [broker for broker, manager in managers.items() if manager == "extensible"]:
            reports.pop(broker, None)  # the broker's node in ZooKeeper, which holds no load
            if broker in answered:
                reports[broker] = {**sums[broker], **_usage(metrics.get(broker, {}))}
    reasons = {one.broker: one.reason for one in manifest.missing if one.broker is not None}
    ids = manifest.identity.broker_ids
    known = [broker for broker in ids if broker in reports and broker in managers]
    loads = tuple(BrokerLoad(broker, managers[broker], reports[broker], averages.get(broker)) for broker in known)
    return ClusterLoad(
        where=", ".join((f"cluster {cluster}", f"snapshot {manifest.snapshot}", *_origins(loads, published))),
        read_at_ms=manifest.started_at_ms,
        brokers=loads,
        missing={
            broker: reasons.get(broker, "the snapshot has no report of it") for broker in ids if broker not in known
        },
    )


def planned_usage(state: ClusterState, values: LoadBalancerSettings) -> PlannedUsage:
    """The usage that plans of a snapshot start from; None for brokers without a report or set aside."""
    ratios = np.where(state.brokers.complete, usage_ratios(state.brokers, values), np.nan)
    in_order = np.lexsort((np.array(state.brokers.ids), -ratios)).tolist()
    return PlannedUsage(
        view=state.view,
        weights=weights_of_resources(values),
        usage_ratios={state.brokers.ids[row]: finite(float(ratios[row])) for row in in_order},
    )


def load_now(options: CaptureOptions) -> ClusterLoad:
    """The brokers' current load; those that don't answer, or whose node can't be read, are named.

    Raises `ClusterUnreachable`.
    """
    with ExitStack() as stack:
        transport = stack.enter_context(AdminTransport(options.required_admin))
        client = ReadClient(transport)
        identity = identify(client)
        metadata = (
            stack.enter_context(connected(options.metadata_store)) if options.metadata_store is not None else None
        )
        nodes = dict(metadata.broker_nodes()) if metadata is not None else {}
        averages = dict(metadata.broker_time_averages()) if metadata is not None else {}
        published: set[str] = set()
        pool = stack.enter_context(ThreadPoolExecutor(options.concurrency, thread_name_prefix="brokers"))

        def read(broker: str) -> BrokerLoad | ClusterUnreachable:
            try:
                average = _average(averages[broker]) if broker in averages else None
                if broker in nodes and (report := _published_report(nodes[broker])) is not None:
                    published.add(broker)
                    return BrokerLoad(broker, *report, average)
                # Behind https, a broker's address is known only from its own answer.
                client.owned_bundles(identity.cluster_name, broker)
                return _asked(client, broker, average)
            except ClusterUnreachable as error:
                return error

        answers = dict(zip(identity.brokers, pool.map(read, identity.brokers), strict=True))
        loads = tuple(answer for answer in answers.values() if isinstance(answer, BrokerLoad))
        return ClusterLoad(
            where=", ".join((f"cluster {identity.cluster_name}", *_origins(loads, published))),
            read_at_ms=now_ms(),
            brokers=loads,
            missing={broker: str(answer) for broker, answer in answers.items() if isinstance(answer, Exception)},
        )


def watched(read: Callable[[], ClusterLoad], every_s: int | None, warn: Callable[[str], None]) -> Iterator[ClusterLoad]:
    """The result of `read`, once, or endlessly at intervals of `every_s` seconds.

    An unreachable cluster ends a watch only at the start; later the failure is reported and the read retried.
    """
    WATCH.check(every_s)
    yield read()
    while every_s is not None:
        time.sleep(every_s)
        try:
            load = read()
        except ClusterUnreachable as error:
            warn(str(error))
            continue
        yield load


def _origins(loads: Iterable[BrokerLoad], published: Container[str]) -> list[str]:
    """Where the figures come from, in words; the origin may differ between brokers."""
    return sorted(
        {
            "metrics and sums over topics from the brokers themselves"
            if load.load_manager == "extensible"
            else f"reports {'as published in ZooKeeper' if load.broker in published else 'from the brokers themselves'}"
            for load in loads
        }
    )


def _published_report(node: Node) -> tuple[LoadManagerKind, Report] | None:
    """The last report of a Modular or Simple broker; None from Extensible, whose nodes hold no load."""
    report = decode(node.document, LOAD_REPORT)
    kind = load_manager_kind(report.loadReportType or None, None)
    return None if kind is None else (kind, msgspec.to_builtins(report))


def _average(node: Node) -> Report:
    average: Report = msgspec.to_builtins(decode(node.document, BROKER_TIME_AVERAGE))
    return average


def _asked(client: ReadClient, broker: str, averages: Report | None) -> BrokerLoad:
    class_name = client.runtime_configuration(broker).get("loadManagerClassName")
    if load_manager_kind(None, class_name) == "extensible":
        lines = (line for some in topic_lines(broker, client.broker_topics(broker)) for line in some)
        metrics = msgspec.to_builtins(broker_metrics(client.broker_metrics(broker)))
        return BrokerLoad(broker, "extensible", {**_sums_by_broker(lines)[broker], **_usage(metrics)})
    report: LoadReport = decode(client.load_report(broker), LOAD_REPORT)
    kind = load_manager_kind(report.loadReportType or None, class_name)
    if kind is None:
        raise ClusterUnreachable(f"{broker}: load manager {class_name} is not modular, simple or extensible")
    return BrokerLoad(broker, kind, msgspec.to_builtins(report), averages)


def _usage(metrics: Report) -> Report:
    """Load metrics in the form of `BrokerLoadData`: percent with a limit of 100, and the maximum as a ratio."""
    named = zip(RESOURCES, UsageMetrics.__struct_fields__, strict=True)
    usage = {resource: {"usage": metrics[name], "limit": 100.0} for resource, name in named if name in metrics}
    return {**usage, **({"maxResourceUsage": metrics["max"]} if "max" in metrics else {})}


def _sums_by_broker(lines: Iterable[TopicLine]) -> defaultdict[str, dict[str, float]]:
    """Rates and bundles of each broker, summed over its loaded topics, in the form of `BrokerLoadData`."""
    sums: defaultdict[str, dict[str, float]] = defaultdict(lambda: {**dict.fromkeys(FIGURES, 0.0), "bundleCount": 0})
    bundles: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for line in lines:
        bundles[line.broker].add((line.namespace, line.range))
        for figure in FIGURES:
            sums[line.broker][figure] += float(getattr(line.stats, figure) or 0.0)
    for broker, some in bundles.items():
        sums[broker]["bundleCount"] = len(some)
    return sums
