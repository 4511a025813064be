"""Reads of the metadata store find what Pulsar keeps there, whatever vanishes meanwhile; and they only read."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NoAuthError
from kazoo.handlers import utils
from pydantic import ValidationError

from pulsar_advisor.admin.metadata_store import PATHS_AT_A_TIME, MetadataReader, connected
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection, ZooKeeperStore
from pulsar_advisor.model.errors import ClusterUnreachable, UsageError
from unit.admin.fake_zookeeper import Call, FakeKazoo
from web_server import endless_heads

LOWER, UPPER = "0x00000000_0x80000000", "0x80000000_0xffffffff"
CONNECTION = ZooKeeperConnection(hosts="zk1:2181/pulsar", timeout_s=0.2)


def reader(client: FakeKazoo) -> MetadataReader:
    return MetadataReader(ZooKeeperStore(client, CONNECTION))


def test_bundles_are_found_below_namespaces_of_two_and_of_three_parts() -> None:
    client = FakeKazoo(
        {
            f"/namespace/retail/orders/{UPPER}": b"{}",
            f"/namespace/retail/orders/{LOWER}": b"{}",
            f"/namespace/pulsar/live/b1:8080/{UPPER}": b"{}",
            "/namespace/retail/empty": b"",
        }
    )
    bundles = [bundle for bundle, _ in reader(client).ownerships()]
    assert bundles == [f"retail/orders/{LOWER}", f"retail/orders/{UPPER}", f"pulsar/live/b1:8080/{UPPER}"]


def test_a_node_brings_its_version_and_when_it_was_written() -> None:
    client = FakeKazoo({"/admin/local-policies/retail/orders": b'{"bundles":{}}'})
    ((namespace, node),) = reader(client).local_policies()
    assert (namespace, node.version, node.modified_at_ms) == ("retail/orders", 3, 1_700_000_000_000)


def test_a_node_that_vanishes_while_we_read_is_left_out() -> None:
    path = f"/loadbalance/bundle-data/retail/orders/{LOWER}"
    client = FakeKazoo({path: b"{}", f"/loadbalance/bundle-data/retail/orders/{UPPER}": b"{}"}, vanished={path})
    assert [bundle for bundle, _ in reader(client).bundle_data()] == [f"retail/orders/{UPPER}"]


def test_what_a_cluster_does_not_keep_is_empty() -> None:
    empty = reader(FakeKazoo({}))
    assert [*empty.ownerships(), *empty.bundle_data(), *empty.resource_quotas(), *empty.leaders()] == []


def test_names_of_topics_are_decoded_as_java_encoded_them() -> None:
    ledgers = "/managed-ledgers/retail/orders/persistent"
    client = FakeKazoo({f"{ledgers}/a%2Fb+c": b"", f"{ledgers}/plain": b"", "/managed-ledgers/retail/none": b""})
    assert dict(reader(client).persistent_topics()) == {
        "retail/orders": ["persistent://retail/orders/a/b c", "persistent://retail/orders/plain"],
    }


def test_quotas_of_old_releases_lie_one_level_deeper() -> None:
    quotas = "/loadbalance/resource-quota"
    client = FakeKazoo({f"{quotas}/default": b"{}", f"{quotas}/namespace/retail/orders/{LOWER}": b"{}"})
    assert {name for name, _ in reader(client).resource_quotas()} == {"default", f"retail/orders/{LOWER}"}


def test_the_extensible_managers_leader_comes_first() -> None:
    client = FakeKazoo({"/loadbalance/leader": b"old", "/loadbalance/extension/leader": b"new"})
    assert [node.data for node in reader(client).leaders()] == [b"new", b"old"]


def test_the_number_of_reads_in_flight_is_bounded() -> None:
    brokers = {f"/loadbalance/brokers/b{number}:8080": b"{}" for number in range(3 * PATHS_AT_A_TIME)}
    client = FakeKazoo(brokers)
    assert len(list(reader(client).broker_nodes())) == 3 * PATHS_AT_A_TIME
    assert client.most_in_flight == PATHS_AT_A_TIME


@pytest.mark.parametrize(
    "failure",
    [
        ConnectionLoss(),
        struct.error(),
        RuntimeError("xids do not match"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, ""),
    ],
)
def test_a_lost_session_or_an_answer_that_can_not_be_parsed_is_reported_in_one_line(failure: Exception) -> None:
    message = rf"^ZooKeeper zk1:2181/pulsar: reading /x failed \({type(failure).__name__}\)"
    with pytest.raises(ClusterUnreachable, match=message):
        reader(FakeKazoo({}, failure=failure)).children("/x")


def test_a_name_that_is_no_part_of_a_path_is_reported_in_one_line() -> None:
    class OfBrokers(KazooClient):  # type: ignore[misc]
        def get_children_async(self, path: str) -> Call:
            return Call(FakeKazoo({}), [".."])

    with pytest.raises(ClusterUnreachable, match=r"reading /loadbalance/brokers/\.\. failed \(ValueError\)"):
        list(reader(OfBrokers()).broker_nodes())


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        (CONNECTION, r"no permission to read /x: give a digest_user"),
        (
            CONNECTION.model_copy(update={"digest_user": "us", "digest_password_env": "OURS"}),
            r"no permission to read /x: use another digest_user",
        ),
    ],
)
def test_a_node_we_may_not_read_is_named(connection: ZooKeeperConnection, message: str) -> None:
    client = FakeKazoo({}, failure=NoAuthError())
    with pytest.raises(ClusterUnreachable, match=message):
        MetadataReader(ZooKeeperStore(client, connection)).children("/x")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"digest_user": "us"}, "requires exactly one of digest_password_file, digest_password_env"),
        ({"digest_password_env": "OURS"}, "requires exactly one of"),
        ({"digest_user": "us", "digest_password_env": "OURS", "digest_password_file": "f"}, "requires exactly one of"),
        ({"tls": True, "tls_cert_file": "f"}, "tls_cert_file and tls_key_file must be given together"),
        ({"tls_ca_file": "f"}, "certificates require tls = true"),
        ({"digest_user": "us", "digest_password": "hunter2"}, "secrets are given by reference"),
    ],
)
def test_a_connection_that_can_not_be_right_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ZooKeeperConnection(hosts="zk1:2181", **fields)


def test_the_digest_of_the_user_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "hunter2\n")
    client = ZooKeeperConnection(hosts="zk1:2181", digest_user="us", digest_password_env="OURS").client()
    assert client.auth_data == {("digest", "us:hunter2")}


@pytest.mark.parametrize(
    ("tls", "advice"), [(False, "check hosts, port and firewall$"), (True, "firewall, that it is the secure port")]
)
def test_servers_that_are_out_of_reach_are_named(monkeypatch: pytest.MonkeyPatch, tls: bool, advice: str) -> None:
    monkeypatch.setattr(KazooClient, "start_async", lambda _client: Event())
    with (
        pytest.raises(ClusterUnreachable, match=f"^ZooKeeper zk1:2281: no session within 0.1 s: .*{advice}"),
        ZooKeeperConnection(hosts="zk1:2281", tls=tls, timeout_s=0.1).session(),
    ):
        pass


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"TLS file /nowhere/ca\.pem does not exist"):
        ZooKeeperConnection(hosts="zk1:2281", tls=True, tls_ca_file=Path("/nowhere/ca.pem")).client()
    with pytest.raises(UsageError, match="can't read the secret in"):
        ZooKeeperConnection(hosts="zk1:2181", digest_user="us", digest_password_file=tmp_path / "none").client()


@pytest.mark.parametrize(
    "begin", ["-----BEGIN ENCRYPTED PRIVATE KEY", "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED"]
)
def test_a_key_whose_passphrase_would_be_asked_for_is_refused(tmp_path: Path, begin: str) -> None:
    key = tmp_path / "key.pem"
    key.write_text(begin)
    files = {"tls_cert_file": key, "tls_key_file": key}
    with pytest.raises(UsageError, match=r"key\.pem is encrypted: give the key without a passphrase"):
        ZooKeeperConnection(hosts="zk1:2281", tls=True, **files).client()


def test_an_unreachable_server_is_reported_in_one_line() -> None:
    connection = ZooKeeperConnection(hosts="127.0.0.1:1", timeout_s=0.2)
    with (
        pytest.raises(ClusterUnreachable, match=r"^ZooKeeper 127\.0\.0\.1:1: no session within 0\.2 s: check hosts"),
        connected(connection),
    ):
        pass


def test_a_session_ends_in_time_though_the_client_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    drips, has_stopped = Event(), Event()

    def stop(_client: KazooClient) -> None:
        drips.wait(10)
        has_stopped.set()

    monkeypatch.setattr(KazooClient, "start_async", lambda _client: Event())
    monkeypatch.setattr(KazooClient, "stop", stop)
    with pytest.raises(ClusterUnreachable), ZooKeeperConnection(hosts="zk1:2181", timeout_s=0.1).session():
        pass
    assert not has_stopped.is_set()
    drips.set()


@pytest.mark.parametrize("hosts", ["127.0.0.1:1,127.0.0.2:1,127.0.0.3:1", "zookeeper:1"])
def test_servers_that_swallow_calls_leave_the_others_their_turn(monkeypatch: pytest.MonkeyPatch, hosts: str) -> None:
    waited_s: list[float] = []
    addresses = {"zookeeper": ("127.0.0.1", "127.0.0.2", "127.0.0.3")}

    def resolved(host: str, port: int, *_: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (one, port)) for one in addresses.get(host, (host,))]

    def is_swallowed(*_: object, timeout: float, **__: object) -> socket.socket:
        waited_s.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(utils, "create_tcp_connection", is_swallowed)
    connection = ZooKeeperConnection(hosts=hosts, timeout_s=0.6)
    with pytest.raises(ClusterUnreachable), connection.session():
        pass
    assert (len(waited_s) >= 3, sum(waited_s[:2]) < connection.timeout_s) == (True, True)


@pytest.mark.parametrize("connects", ["in time", "once it was given up"])
def test_a_session_whose_answer_drips_leaves_no_thread(connects: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, was_given_up = utils.create_tcp_connection, Event()

    def connect_late(*arguments: Any, **options: Any) -> socket.socket:
        made: socket.socket = connect(*arguments, **options)
        was_given_up.wait(10)
        return made

    if connects != "in time":
        monkeypatch.setattr(utils, "create_tcp_connection", connect_late)
    with endless_heads((1 << 19).to_bytes(4, "big")) as address:
        before, connection = set(threading.enumerate()), ZooKeeperConnection(hosts=address[7:], timeout_s=0.5)
        with pytest.raises(ClusterUnreachable), connection.session():
            pass
        was_given_up.set()
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
        assert set(threading.enumerate()) <= before


def test_an_answer_that_can_not_be_parsed_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", printed.append)
    has_ended = Event()

    def answer() -> None:
        with suppress(OSError), server.accept()[0] as peer:
            peer.recv(4096)
            begun = struct.pack(">iiqi16s?", 0, 10_000, 5, 16, b"", False)
            peer.sendall(struct.pack(">i", len(begun)) + begun)
            peer.recv(4096)  # the session has begun: only now may it break
            peer.sendall(struct.pack(">i", 2) + b"xx")
            has_ended.wait(10)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, daemon=True).start()
        connection = ZooKeeperConnection(hosts=f"127.0.0.1:{server.getsockname()[1]}", timeout_s=10)
        with pytest.raises(ClusterUnreachable, match="reading /x failed"), connection.session() as store:
            list(store.children(["/x"]))
        has_ended.set()
    assert printed == []
