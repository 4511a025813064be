"""A small HTTP double of a Pulsar cluster, for faults that real brokers don't make on demand."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection
from unit.admin.fake_zookeeper import FakeKazoo, read_by_captures
from web_server import HTTPServer

ADMIN = "/admin/v2"
SECRET = "hunter2-do-not-keep"
BOUNDARIES = ["0x00000000", "0x80000000", "0xffffffff"]
LOWER, UPPER = "retail/orders/0x00000000_0x80000000", "retail/orders/0x80000000_0xffffffff"
MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
TOPIC = "persistent://retail/orders/checkout"

TOPIC_STATS: dict[str, Any] = {
    "publishers": [{"msgRateIn": 4.5, "address": SECRET, "producerName": SECRET, "metadata": {"k": SECRET}}],
    "subscriptions": {"billing": {"consumers": [{"msgRateOut": 4.5, "consumerName": SECRET}], "msgBacklog": 7}},
    "replication": {"eu": {"connected": True, "inboundConnection": SECRET}},
    "msgRateIn": 4.5,
    "msgThroughputIn": 450.25,
    "ownerBroker": SECRET,
}


def load_report(**fields: Any) -> dict[str, Any]:
    usage = {"usage": 12.5, "limit": 400.0}
    return {
        "loadReportType": "LocalBrokerData",
        "cpu": usage,
        "maxResourceUsage": 0.03,
        "lastStats": {LOWER: {"msgRateIn": 4.5, "topics": 1}},
        "bundles": [LOWER],
        "protocols": {"kafka": SECRET},
        "advertisedListeners": {"internal": {"brokerServiceUrl": SECRET}},
        **fields,
    }


def leader_metrics(unloads: int | None = None) -> list[dict[str, Any]]:
    """The metrics of a Modular broker; those of a leader that has run a shedding cycle have its unloads."""
    load = {"dimensions": {"broker": SECRET, "metric": "loadBalancing"}, "metrics": {"brk_lb_cpu_usage": 3.1}}
    counts = {"brk_lb_unload_broker_total": 1, "brk_lb_unload_bundle_total": unloads}
    cycles = [] if unloads is None else [{"dimensions": {"metric": "bundleUnloading"}, "metrics": counts}]
    return [load, *cycles, {"dimensions": {"namespace": SECRET}, "metrics": {"brk_in_rate": 4.5}}]


class FakeBroker:
    """One broker on a host of its own; it gives prepared answers and records requests."""

    def __init__(self, server: HTTPServer) -> None:
        self._server = server
        self.id = f"{server.host}:{server.port}"
        self.url = f"http://{self.id}"

    def answers(self, path: str, document: Any, status: int = 200) -> None:
        """From now on, GET of this path is answered so."""
        self._forget(path)
        handler = self._server.expect_request(f"{ADMIN}{path}", method="GET")
        if isinstance(document, str):
            handler.respond_with_data(document, status=status)
        else:
            handler.respond_with_json(document, status=status)

    def answers_by(self, path: str, handler: Any) -> None:
        """From now on, GET of this path is answered by a function of the request."""
        self._forget(path)
        self._server.expect_request(f"{ADMIN}{path}", method="GET").respond_with_handler(handler)

    def stop(self) -> None:
        """Refuse connections; no other process gets the port."""
        self._server.stop()
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind((self._server.host, self._server.port))

    @property
    def requests(self) -> list[tuple[str, str]]:
        """(method, path) of every request so far."""
        return [(request.method, request.path) for request, _ in self._server.log]

    def _forget(self, path: str) -> None:
        handlers = self._server.handlers
        handlers[:] = [handler for handler in handlers if handler.matcher.uri != f"{ADMIN}{path}"]


class FakeCluster:
    """Two Modular brokers, one namespace of two bundles, one bundle with a loaded topic on each."""

    def __init__(self, first: HTTPServer, second: HTTPServer) -> None:
        self.first, self.second = FakeBroker(first), FakeBroker(second)
        for broker, bundle in ((self.first, LOWER), (self.second, UPPER)):
            broker.answers(f"/brokers/fake/{broker.id}/ownedNamespaces", {bundle: {"is_active": True}})
            broker.answers("/broker-stats/load-report", load_report())
            broker.answers("/broker-stats/metrics", leader_metrics())
            bundle_range = bundle.rpartition("/")[2]
            broker.answers(
                "/broker-stats/topics", {"retail/orders": {bundle_range: {"persistent": {TOPIC: TOPIC_STATS}}}}
            )
        self.configure_all(loadManagerClassName=MODULAR)
        self._answer_for_the_cluster()

    def answers(self, path: str, document: Any, status: int = 200) -> None:
        """From now on, GET of this path is answered so, whichever broker is asked."""
        for broker in (self.first, self.second):
            broker.answers(path, document, status)

    def answers_by(self, path: str, handler: Any) -> None:
        """From now on, GET of this path is answered by a function of the request, whichever broker is asked."""
        for broker in (self.first, self.second):
            broker.answers_by(path, handler)

    def configure_all(self, **settings: str) -> None:
        """Give every broker these settings."""
        for broker in (self.first, self.second):
            self.configure(broker, **settings)

    def configure(self, broker: FakeBroker, **settings: str) -> None:
        """Give a broker these settings beside the cluster's name and a secret."""
        secrets = {"brokerClientAuthenticationParameters": f"token:{SECRET}", "tlsKeyStorePassword": SECRET}
        broker.answers("/brokers/configuration/runtime", {"clusterName": "fake", **secrets, **settings})

    def options(self, **admin: Any) -> CaptureOptions:
        urls = (self.first.url, self.second.url)
        return CaptureOptions(admin=AdminConnection(**{"admin_urls": urls, "connect_timeout_s": 2, **admin}))

    def _answer_for_the_cluster(self) -> None:
        self.answers("/brokers/version", "4.0.8")
        self.answers("/brokers/fake", [self.first.id, self.second.id])
        self.answers("/brokers/leaderBroker", {"brokerId": self.second.id})
        self.answers("/brokers/configuration/values", {"loadBalancerEnabled": "true", "someSecret": SECRET})
        self.answers("/clusters/fake/namespaceIsolationPolicies", {"reason": "none"}, status=404)
        self.answers("/clusters/fake/failureDomains", {"zone-a": {"brokers": [self.first.id]}})
        self.answers("/tenants", ["retail"])
        self.answers("/namespaces/retail", ["retail/orders"])
        policies = {
            "bundles": {"boundaries": BOUNDARIES, "numBundles": 2},
            "deleted": False,
            "properties": {"password": SECRET},
            "auth_policies": {"namespace_auth": {SECRET: ["produce"]}},
        }
        self.answers("/namespaces/retail/orders", policies)
        self.answers("/namespaces/retail/orders/antiAffinity", "", status=204)
        self.answers("/persistent/retail/orders", [TOPIC])
        self.answers("/persistent/retail/orders/partitioned", ["persistent://retail/orders/parts"])
        self.answers("/non-persistent/retail/orders/partitioned", [])
        self.answers("/persistent/retail/orders/parts/partitions", {"partitions": 4})


@contextmanager
def fake_cluster() -> Iterator[FakeCluster]:
    """A running double."""
    with ExitStack() as stack:
        servers = [stack.enter_context(HTTPServer(host=f"127.0.0.{host}", port=0, threaded=True)) for host in (1, 2)]
        yield FakeCluster(*servers)


def with_zookeeper(cluster: FakeCluster, nodes: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> CaptureOptions:
    """Options of a capture that finds these nodes in ZooKeeper."""
    read_by_captures(FakeKazoo(nodes), monkeypatch)
    return cluster.options().model_copy(update={"zookeeper": ZooKeeperConnection(hosts="zk1:2181")})
