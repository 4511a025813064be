"""However a real cluster is read, by REST, ZooKeeper or both, the snapshots agree; and a move in between is settled."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from captures import Captured, Silence, everything_in
from harness.certificates import make_certificates
from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import SUPER_USER_ROLE
from harness.keycloak import AUDIENCE, PLUGIN, LiveKeycloak, running
from live.starting import StartCluster, unavailable_skips
from pulsar_advisor.admin.options import CaptureOptions, capture_options
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.diagnosis.examination import examine
from pulsar_advisor.diagnosis.findings import diagnose
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.storage.root import Root
from web_server import HTTPServer

pytestmark = [pytest.mark.live, pytest.mark.full]

NAMESPACE = "ways/in"
TOPIC = f"persistent://{NAMESPACE}/letters"
MOVE_LIMIT_S = 60
CLIENT_SECRET = "planted-secret-7f3a"
TOKEN_LIFETIME_S = 5


def owners(snapshot: Captured) -> set[tuple[str, str]]:
    """(bundle, broker) of users' bundles at the end, by whatever source there is."""
    return {
        (line["bundle"], line["broker"])
        for line in snapshot.lines("owned_bundles")
        if line["pass"] == "end" and line["bundle"].startswith(NAMESPACE)
    }


@contextmanager
def producing(cluster: LiveCluster) -> Iterator[None]:
    """One producer, who comes back wherever its bundle goes."""
    import pulsar

    client = pulsar.Client(cluster.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        producer = client.create_producer(TOPIC)
        producer.send(b"letter")
        yield
    finally:
        client.close()


@pytest.fixture(scope="module")
def used(cluster: LiveCluster) -> Iterator[LiveCluster]:
    cluster.admin.write("PUT", "/tenants/ways", body={"allowedClusters": ["live"]})
    cluster.admin.write("PUT", f"/namespaces/{NAMESPACE}", body={"bundles": {"numBundles": 4}})
    cluster.admin.write("PUT", f"/persistent/{NAMESPACE}/parts/partitions", body=2)
    cluster.admin.write("POST", "/clusters/live/failureDomains/ways", body={"brokers": cluster.broker_ids[:1]})
    with producing(cluster):
        yield cluster


def test_three_ways_in_lead_to_the_same_cluster(used: LiveCluster, tmp_path: Path) -> None:
    admin = {"admin_urls": tuple(used.admin_urls)}
    ways = {
        "both": capture_options(admin=admin, zookeeper=used.zookeeper),
        "rest": capture_options(admin=admin),
        "zookeeper": capture_options(zookeeper=used.zookeeper),
    }
    taken = {name: Captured(Root(str(tmp_path / name), "live"), options) for name, options in ways.items()}

    def said(snapshot: Captured) -> dict[str, Any]:
        return {
            "what": [snapshot.manifest[key] for key in ("identity", "load_manager", "pulsar_version", "leader")],
            "owners": owners(snapshot),
            "boundaries": {
                line["namespace"]: line["document"]["bundles"]["boundaries"]
                for line in snapshot.lines("namespaces")
                if line["namespace"] == NAMESPACE
            },
            "topics": {line["topic"] for line in snapshot.lines("topic_names") if line["namespace"] == NAMESPACE},
            "partitions": [line for line in snapshot.lines("partitioned_topics") if line["namespace"] == NAMESPACE],
            "domains": [line for line in snapshot.lines("failure_domains") if line["domain"] == "ways"],
        }

    both = said(taken["both"])
    assert {name: said(snapshot) for name, snapshot in taken.items()} == dict.fromkeys(taken, both)
    assert both["owners"]
    assert len(both["topics"]) >= 3
    reasons = {entry["surface"]: entry["reason"] for entry in taken["zookeeper"].manifest["missing"]}
    assert reasons.keys() == {"settings", "load_reports", "topic_stats"}
    assert taken["zookeeper"].lines("load_reports")
    findings = {row.check: row.status for row in diagnose(examine(ways["zookeeper"])).rows}
    assert findings == {"cluster": "ok", "leader": "ok", "zookeeper": "ok", "computable": "warning"}


def test_tokens_of_an_oauth2_issuer_open_real_brokers(start_cluster: StartCluster, root: Root, tmp_path: Path) -> None:
    cluster = start_cluster(ClusterOptions(brokers=1, token_authentication=True, cpu_sensor=False))
    assert cluster.tokens is not None
    token = {"access_token": cluster.tokens.super_user, "expires_in": 0}  # so that every call needs a new one
    (tmp_path / "key.json").write_text(json.dumps({"client_id": "advisor", "client_secret": CLIENT_SECRET}))
    with HTTPServer(host="127.0.0.1", port=0) as issuer:
        endpoint = {"token_endpoint": issuer.url_for("/token")}
        issuer.expect_request("/.well-known/openid-configuration").respond_with_json(endpoint)
        issuer.expect_request("/token", method="POST").respond_with_json(token)
        oauth2 = {"issuer_url": issuer.url_for(""), "key_file": tmp_path / "key.json"}
        options = capture_options(
            admin={"admin_urls": tuple(cluster.admin_urls), "oauth2": oauth2}, zookeeper=cluster.zookeeper
        )
        snapshot = Captured(root, options)
        asked = len([request for request, _ in issuer.log if request.path == "/token"])
    assert snapshot.manifest["missing"] == []
    assert asked >= sum(read["requests"] for read in snapshot.manifest["reads"] if read["status"] is not None)
    content = everything_in(root)
    for secret in (cluster.tokens.super_user.rpartition(".")[2], CLIENT_SECRET):
        assert secret.encode() not in content


def test_tokens_of_an_openid_issuer_open_real_brokers_and_one_for_another_audience_is_not_anybodys(
    start_cluster: StartCluster, root: Root, tmp_path: Path
) -> None:
    secrets = {SUPER_USER_ROLE: CLIENT_SECRET, "stranger": "another secret"}
    certificates = make_certificates(tmp_path / "certificates", ["127.0.0.1"], SUPER_USER_ROLE)
    with (
        unavailable_skips(),
        running(LiveKeycloak(secrets, certificates, TOKEN_LIFETIME_S, strangers={"stranger"}), tmp_path) as keycloak,
    ):
        # As this role, a broker answers calls that don't say how they authenticate.
        settings = keycloak.broker_settings | {"anonymousUserRole": "anybody"}
        cluster = start_cluster(
            ClusterOptions(brokers=1, token_authentication=True, plugins=(PLUGIN,), settings=settings, cpu_sensor=False)
        )

        def options(client: str) -> CaptureOptions:
            key = tmp_path / f"{client}.json"
            key.write_text(json.dumps({"client_id": client, "client_secret": secrets[client]}))
            oauth2 = {
                "issuer_url": keycloak.issuer_url,
                "key_file": key,
                "audience": AUDIENCE,
                "tls_ca_file": certificates.authority,
            }
            admin = {"admin_urls": tuple(cluster.admin_urls), "oauth2": oauth2}
            return capture_options(admin=admin, zookeeper=cluster.zookeeper)

        with AdminTransport(options(SUPER_USER_ROLE).admin) as transport:
            first = transport.authorization()
            time.sleep(TOKEN_LIFETIME_S)
            assert transport.get("/admin/v2/clusters").status == 200
            assert transport.authorization() != first
        snapshot = Captured(root, options(SUPER_USER_ROLE))
        with pytest.raises(ClusterUnreachable, match="401, credentials rejected"):
            Captured(Root(str(tmp_path / "refused"), "live"), options("stranger"))
    assert snapshot.manifest["missing"] == []
    assert CLIENT_SECRET.encode() not in everything_in(root)


class MoveMidway(Silence):
    """Moves the topic's bundle to another broker when the capture has read the brokers, and waits until it is there."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster
        self.bundle = ""
        self.brokers: set[str] = set()

    def begin(self, step: str, total: int) -> None:
        if step != "cluster":
            return
        admin = self._cluster.admin
        bundle_range = admin.call("GET", f"/lookup/v2/topic/persistent/{NAMESPACE}/letters/bundle").text.strip()
        self.bundle = f"{NAMESPACE}/{bundle_range}"
        source = admin.owners("live")[self.bundle]
        destination = next(broker for broker in self._cluster.broker_ids if broker != source)
        deadline = time.monotonic() + MOVE_LIMIT_S
        # Under Modular a destination is a wish.
        while (owner := admin.owners("live").get(self.bundle, source)) == source:
            assert time.monotonic() < deadline, f"{self.bundle} never left {source}"
            wish = {"destinationBroker": destination}
            admin.write("PUT", f"/namespaces/{NAMESPACE}/{bundle_range}/unload", params=wish)
            admin.look_up(TOPIC)
        self.brokers = {source, owner}


def test_a_second_pass_finds_a_moved_bundle_once_and_at_its_new_owner(used: LiveCluster, root: Root) -> None:
    options = capture_options(admin={"admin_urls": tuple(used.admin_urls)}, zookeeper=used.zookeeper, second_pass=True)
    move = MoveMidway(used)
    snapshot = Captured(root, options, move)
    assert move.bundle in snapshot.manifest["moved_bundles"]
    assert move.brokers <= set(snapshot.manifest["read_again"])
    ((_, owner),) = [pair for pair in owners(snapshot) if pair[0] == move.bundle and pair[1] in move.brokers]
    reporting = [
        line["broker"]
        for line in snapshot.lines("load_reports")
        if line["source"] == "rest" and move.bundle in line["document"]["lastStats"]
    ]
    loading = {line["broker"] for line in snapshot.lines("topic_stats") if line["topic"] == TOPIC}
    assert (reporting, loading) == ([owner], {owner})
