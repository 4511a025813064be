"""Lists the calls that a capture makes, and their targets, without making any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from pulsar_advisor.admin.metadata_store import StoreConnection
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.oxia import OxiaConnection
from pulsar_advisor.capture.system_topics import PUBLISHED, TOPICS
from pulsar_advisor.model.bounds import duration

Target = Literal["any broker", "each broker", "the leader", "ZooKeeper", "Oxia", "configuration store", "system topic"]


@dataclass(frozen=True)
class Call:
    """One kind of call. In `call`, a name in braces is a placeholder for every cluster, broker, namespace…"""

    target: Target
    call: str
    times: str = "once"


_ADMIN: Final = (
    Call("any broker", "GET /admin/v2/brokers/configuration/runtime"),
    Call("any broker", "GET /admin/v2/brokers/{cluster}", "at the beginning and at the end"),
    Call("any broker", "GET /admin/v2/brokers/leaderBroker", "at the beginning and at the end"),
    Call("each broker", "GET /admin/v2/brokers/{cluster}/{broker}/ownedNamespaces", "at the beginning and at the end"),
    Call("each broker", "GET /admin/v2/brokers/configuration/runtime"),
    Call("each broker", "GET /admin/v2/brokers/version"),
    Call("each broker", "GET /admin/v2/broker-stats/load-report", "once, not under Extensible"),
    Call("each broker", "GET /admin/v2/broker-stats/metrics", "once, under Extensible"),
    Call("each broker", "GET /admin/v2/broker-stats/topics"),
    Call("the leader", "GET /admin/v2/broker-stats/metrics", "once, under Modular"),
    Call("any broker", "GET /admin/v2/metadata/migration/status", "once, from 4.2 on"),
    Call("any broker", "GET /admin/v2/brokers/configuration/values"),
    Call("any broker", "GET /admin/v2/clusters/{cluster}/namespaceIsolationPolicies"),
    Call("any broker", "GET /admin/v2/clusters/{cluster}/failureDomains"),
    Call("any broker", "GET /admin/v2/tenants"),
    Call("any broker", "GET /admin/v2/namespaces/{tenant}", "for each tenant"),
    Call("any broker", "GET /admin/v2/namespaces/{tenant}/{namespace}", "for each namespace"),
    Call("any broker", "GET /admin/v2/namespaces/{tenant}/{namespace}/antiAffinity", "for each namespace"),
    Call("any broker", "GET /admin/v2/persistent/{tenant}/{namespace}", "for each namespace"),
    Call("any broker", "GET /admin/v2/persistent/{tenant}/{namespace}/partitioned", "for each namespace"),
    Call("any broker", "GET /admin/v2/non-persistent/{tenant}/{namespace}/partitioned", "for each namespace"),
    Call("any broker", "GET /admin/v2/scalable/{tenant}/{namespace}", "for each namespace, from 5.0 on"),
    Call("any broker", "GET /admin/v2/scalable/{tenant}/{namespace}/{topic}", "for each scalable topic"),
    Call(
        "any broker", "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitions", "for each topic with partitions"
    ),
)

_ZOOKEEPER: Final = (
    Call("ZooKeeper", "getChildren /loadbalance"),
    Call("ZooKeeper", "getChildren, getData /loadbalance/brokers/**"),
    Call("ZooKeeper", "getChildren, getData /namespace/**", "at the beginning and at the end"),
    Call("ZooKeeper", "getChildren, getData /service_unit_state/**", "once, if Extensible keeps its state there"),
    Call("ZooKeeper", "getData /loadbalance/leader"),
    Call("ZooKeeper", "getData /loadbalance/extension/leader"),
    Call("ZooKeeper", "getChildren, getData /admin/local-policies/**"),
    Call("ZooKeeper", "getChildren, getData /loadbalance/bundle-data/**"),
    Call("ZooKeeper", "getChildren, getData /loadbalance/broker-time-average/**"),
    Call("ZooKeeper", "getChildren, getData /loadbalance/resource-quota/**"),
    Call("ZooKeeper", "getChildren /managed-ledgers/**"),
    Call("ZooKeeper", "getChildren, getData /topics/**", "once, with the load of each segment"),
)

_DYNAMIC_SETTINGS: Final = Call("ZooKeeper", "getData /admin/configuration")

_CONFIGURATION: Final = (
    Call("ZooKeeper", "getChildren /admin/clusters"),
    Call("ZooKeeper", "getData /admin/clusters/{cluster}/namespaceIsolationPolicies"),
    Call("ZooKeeper", "getChildren, getData /admin/clusters/{cluster}/failureDomain/**"),
    Call("ZooKeeper", "getChildren, getData /admin/policies/**"),
    Call("ZooKeeper", "getChildren, getData /admin/partitioned-topics/**"),
)


def explained(options: CaptureOptions) -> Iterator[Call]:
    """The calls of a capture with these options, in the order in which it starts them.

    Redirects to a broker of the cluster are followed, and temporary failures are tried three times.
    """
    if options.admin is None:
        apart = options.configuration_store
        target: Target | None = None if apart is None else "configuration store"
        yield from _of_store(_CONFIGURATION, apart or options.metadata_store, target)
        yield from _of_store((_DYNAMIC_SETTINGS,), options.metadata_store)
    else:
        yield from _ADMIN
    if options.admin is not None and options.second_pass:
        for call in _ADMIN:
            if call.target == "each broker" and call.call.startswith("GET /admin/v2/broker-stats/"):
                yield replace(call, times="once more, if bundles have moved")
    if options.metadata_store is not None:
        yield from _of_store(_ZOOKEEPER, options.metadata_store)
    if options.service_url is not None:
        for surface, topic in TOPICS.items():
            if surface not in PUBLISHED:
                yield Call("system topic", f"read {topic}", "once, under Extensible")
            elif options.listen_s:
                times = f"for at most {duration(options.listen_s)}, under Extensible"
                yield Call("system topic", f"read {topic}", times)


def _of_store(calls: Iterable[Call], store: StoreConnection | None, target: Target | None = None) -> Iterator[Call]:
    """The reads of a store, in that store's terms; `target`: its name, by default its kind."""
    for call in calls:
        if isinstance(store, OxiaConnection):
            in_oxia = call.call.replace("getChildren", "List").replace("getData", "Read")
            yield Call(target or "Oxia", in_oxia, call.times)
        else:
            yield replace(call, target=target or call.target)
