"""A real Oxia: its servers read, killed and refused, and brokers that keep their metadata in it.

Its server is a Go program that no Maven repository has: without `oxia` on the PATH these tests are skipped.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from captures import Captured
from harness.certificates import make_certificates
from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.numbered_messages import numbered_messages
from harness.oxia import AUDIENCE, ISSUER, NAMESPACE, LiveOxia, running
from harness.shell import ADVISOR, Shell, call, plain_connection
from live.goals import carry_out, judge
from live.plans import divide, topics_inside, wait_until_reported
from live.starting import StartCluster, unavailable_skips
from parity.java_store import Read, read_by_java
from pulsar_advisor.admin.metadata_store import MetadataStore
from pulsar_advisor.admin.options import capture_options
from pulsar_advisor.admin.oxia import OxiaConnection
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.storage.root import Root

pytestmark = [pytest.mark.live, pytest.mark.full]

RECORDS = {f"/loadbalance/brokers/b{number}:8080": f"load of {number}" for number in range(40)}
GOALS = "goals/many"
BUNDLES = 12
DATA_NOT_FIT = 3
MIGRATED_WITHIN_S = 90


def put(oxia: LiveOxia, path: str, value: str, *words: str) -> None:
    """Write a record with Oxia's own client."""
    command = ["oxia", "client", "put", "--service-address", oxia.addresses[0], "--namespace", NAMESPACE, *words]
    subprocess.run([*command, path, value], check=True, capture_output=True)


def everything_below(store: MetadataStore, path: str) -> list[str]:
    """Every path below one, itself not."""
    found: list[str] = []
    level = [path]
    while level:
        level = [f"{parent}/{name}" for parent, names in store.children(level) for name in names]
        found += level
    return found


@pytest.fixture(scope="module")
def three_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveOxia]:
    with unavailable_skips(), running(LiveOxia(tmp_path_factory.mktemp("oxia"), servers=3)) as oxia:
        for path, value in RECORDS.items():
            put(oxia, path, value)
        put(oxia, "/topics/t/segments/0/load", "of a segment", "--partition-key", "/topics/t")
        yield oxia


def test_records_are_read_from_the_servers_that_lead_their_shards(three_servers: LiveOxia) -> None:
    with OxiaConnection(url=three_servers.url).session() as store:
        assert dict(store.children(["/loadbalance/brokers"])) == {
            "/loadbalance/brokers": sorted(path.rpartition("/")[2] for path in RECORDS)
        }
        assert {node.path: node.data.decode() for node in store.nodes([*RECORDS, "/nothing"])} == RECORDS
        assert [node.data for node in store.nodes(["/topics/t/segments/0/load"])] == [b"of a segment"]


def test_another_namespace_is_named(three_servers: LiveOxia) -> None:
    with (
        pytest.raises(ClusterUnreachable, match="/other: no such namespace"),
        OxiaConnection(url=f"oxia://{three_servers.addresses[0]}/other").session(),
    ):
        pass


def test_a_session_outlives_the_leaders_of_its_shards(three_servers: LiveOxia) -> None:
    with OxiaConnection(url=three_servers.url).session() as store:
        assert len(list(store.nodes(RECORDS))) == len(RECORDS)
        three_servers.kill_server(three_servers.addresses[1])
        assert {node.path: node.data.decode() for node in store.nodes(RECORDS)} == RECORDS


def test_tls_a_clients_certificate_and_a_token_are_wanted(tmp_path: Path) -> None:
    files = make_certificates(tmp_path / "certificates", ["127.0.0.1"], "advisor")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = tmp_path / "issuer.pem"
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "advisor", "exp": time.time() + 3600}
    token, expired = tmp_path / "token", tmp_path / "expired"
    token.write_text(jwt.encode(claims, key, "RS256"))
    expired.write_text(jwt.encode({**claims, "exp": time.time() - 3600}, key, "RS256"))
    right = {
        "tls": True,
        "tls_ca_file": files.authority,
        "tls_cert_file": files.client,
        "tls_key_file": files.client_key,
        "token_file": token,
    }
    wrong = {
        "no permission": {**right, "token_file": expired},
        "give a token_file": {**right, "token_file": None},
        "UNAVAILABLE": {**right, "tls_cert_file": None, "tls_key_file": None},
    }
    with unavailable_skips(), running(LiveOxia(tmp_path / "oxia", certificates=files, token_key=public)) as oxia:
        with OxiaConnection.model_validate({"url": oxia.url, **right}).session() as store:
            assert list(store.nodes(["/nothing"])) == []
        for says, given in wrong.items():
            with (
                pytest.raises(ClusterUnreachable, match=says),
                OxiaConnection.model_validate({"url": oxia.url, **given}).session(),
            ):
                pass


@pytest.fixture(scope="module", params=[("modular", "4.0.8"), ("extensible", "5.0.1")], ids="-".join)
def brokers(request: pytest.FixtureRequest) -> Iterator[LiveCluster]:
    """Three brokers with their metadata in Oxia, and clients in each bundle of a namespace."""
    manager, release = request.param
    with unavailable_skips(), LiveCluster(ClusterOptions(release, manager, oxia=True)) as cluster:
        topics = [topics_inside(GOALS, text, 1)[0] for text in divide(cluster, GOALS, BUNDLES)]
        with numbered_messages(cluster, topics):
            wait_until_reported(cluster, set(topics))
            yield cluster


def test_pulsars_java_store_reads_the_same_as_ours(brokers: LiveCluster) -> None:
    with OxiaConnection(url=brokers.metadata_store).session() as store:
        paths = ["/admin/clusters/live", *everything_below(store, "/admin"), *everything_below(store, "/namespace")]
        children = dict(store.children(paths))
        ours = {
            node.path: Read(children[node.path], node.data, node.created_at_ms, node.modified_at_ms)
            for node in store.nodes(paths)
        }
    assert f"/admin/policies/{GOALS}" in ours
    assert ours == read_by_java(brokers.metadata_store, paths)


def test_a_capture_says_what_the_brokers_say(brokers: LiveCluster, root: Root) -> None:
    admin = {"admin_urls": tuple(brokers.admin_urls)}
    taken = Captured(root, capture_options(admin=admin, metadata_store=brokers.metadata_store))
    assert [one for one in taken.manifest["missing"] if not one["reason"].startswith("not available ")] == []
    assert taken.manifest["failures"] == []
    by_source: dict[str, set[tuple[str, str]]] = {}
    for line in taken.lines("owned_bundles"):
        if line["pass"] == "end":
            by_source.setdefault(line["source"], set()).add((line["bundle"], line["broker"]))
    owners = set(brokers.admin.owners(CLUSTER_NAME).items())
    assert {source: owned == owners for source, owned in by_source.items()} == dict.fromkeys(by_source, True)
    assert "rest" in by_source


def test_a_capture_of_oxia_alone_names_brokers_and_policies(brokers: LiveCluster, root: Root) -> None:
    taken = Captured(root, capture_options(metadata_store=brokers.metadata_store))
    assert {line["broker"] for line in taken.lines("brokers")} == set(brokers.broker_ids)
    assert GOALS in {line["namespace"] for line in taken.lines("namespaces")}


def test_doctor_reads_oxia(brokers: LiveCluster) -> None:
    examined = call([str(ADVISOR), "doctor", *plain_connection(brokers), "--json"])
    of_oxia = {row["check"]: row["status"] for row in examined.document["rows"] if row["check"].startswith("oxia")}
    assert of_oxia == {"oxia": "ok"}, examined.out


def test_a_broker_is_drained(brokers: LiveCluster, tmp_path: Path) -> None:
    shell = Shell(tmp_path, plain_connection(brokers))
    judge(shell)
    drained = brokers.broker_ids[-1]
    done = carry_out(brokers, shell, "drain", drained)
    assert done.unloads
    left = {name for name, owner in brokers.admin.owners(CLUSTER_NAME).items() if owner == drained}
    assert {name for name in left if name.startswith(f"{GOALS}/")} <= done.astray


def test_brokers_that_migrated_to_oxia_are_read_there_and_no_longer_in_zookeeper(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster(ClusterOptions(release="5.0.1", brokers=2, cpu_sensor=False))
    divide(cluster, "goals/before", 2)
    with unavailable_skips(), running(LiveOxia(tmp_path / "oxia")) as oxia:
        cluster.admin.write("POST", "/metadata/migration/start", params={"target": oxia.url})
        deadline = time.monotonic() + MIGRATED_WITHIN_S
        while (status := cluster.admin.read("/metadata/migration/status"))["phase"] != "COMPLETED":
            assert time.monotonic() < deadline, status
            time.sleep(1)
        divide(cluster, "goals/after", 2)

        urls = [word for url in cluster.admin_urls for word in ("--admin-url", url)]
        shell = Shell(tmp_path, ())
        outdated = shell("capture", *urls, "--metadata-store", cluster.metadata_store)
        assert (outdated.code, "is outdated" in outdated.err) == (DATA_NOT_FIT, True), outdated.err
        captured = shell("capture", *urls, "--metadata-store", oxia.url, "--json")
        assert (captured.code, captured.document["missing"]) == (0, []), captured.err
        with OxiaConnection(url=oxia.url).session() as store:
            ((_, namespaces),) = store.children(["/admin/policies/goals"])
    assert namespaces == ["after", "before"]
