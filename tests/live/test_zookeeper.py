"""A real ZooKeeper is read through TLS, below a chroot and past digest protection, and says no to everyone else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from harness import children
from harness.artifacts import class_path
from harness.certificates import Certificates, make_certificates
from harness.errors import LiveClusterUnavailable
from harness.ports import free_port
from pulsar_advisor.admin.metadata_store import connected
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection
from pulsar_advisor.model.errors import ClusterUnreachable

pytestmark = [pytest.mark.live, pytest.mark.full]

USER, PASSWORD = "advisor", "hunter2"
START_LIMIT_S = 60
BUNDLE = "retail/orders/0x00000000_0xffffffff"
CHROOT = "/pulsar"


@dataclass(frozen=True)
class SecureZooKeeper:
    """One server that speaks TLS only, to clients with a certificate of its authority."""

    port: int
    certificates: Certificates

    def connection(self, **options: Any) -> ZooKeeperConnection:
        """As the advisor connects, with everything right by default."""
        right = {
            "hosts": f"127.0.0.1:{self.port}{CHROOT}",
            "timeout_s": 10,
            "tls": True,
            "tls_ca_file": self.certificates.authority,
            "tls_cert_file": self.certificates.client,
            "tls_key_file": self.certificates.client_key,
        }
        return ZooKeeperConnection(**{**right, **options})


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureZooKeeper]:
    try:
        jars = class_path()
    except LiveClusterUnavailable as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("zookeeper")
    certificates = make_certificates(directory, ["127.0.0.1"], "advisor")
    key_store = directory / "server.pem"
    key_store.write_bytes(certificates.broker_key.read_bytes() + certificates.broker.read_bytes())
    port = free_port()
    settings = {
        "dataDir": directory / "data",
        "secureClientPort": port,
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": key_store,
        "ssl.trustStore.location": certificates.authority,
        "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        "admin.enableServer": "false",
        "forceSync": "no",
    }
    configuration = directory / "zoo.cfg"
    configuration.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = ["java", "-Xmx128m", "-cp", jars, "org.apache.zookeeper.server.ZooKeeperServerMain", configuration]
    process = children.start(command, directory / "zookeeper.log")
    try:
        running = SecureZooKeeper(port, certificates)
        _fill(running, directory)
        yield running
    finally:
        children.kill(process)


def _fill(zookeeper: SecureZooKeeper, directory: Path) -> None:
    """A little of Pulsar's metadata below the chroot; who owns what is for the digest's owner only."""
    client: KazooClient = zookeeper.connection(hosts=f"127.0.0.1:{zookeeper.port}").client()
    client.read_only = False
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            client.start(timeout=2)
            break
        except Exception:
            assert time.monotonic() < deadline, (directory / "zookeeper.log").read_text()[-3000:]
    try:
        client.create(f"{CHROOT}/loadbalance/brokers/b1:8080", b"{}", makepath=True)
        protected = [make_digest_acl(USER, PASSWORD, read=True)]
        client.create(f"{CHROOT}/namespace/{BUNDLE}", b'{"httpUrl":"http://b1:8080"}', makepath=True)
        client.set_acls(f"{CHROOT}/namespace/{BUNDLE}", protected)
    finally:
        client.stop()
        client.close()


@pytest.fixture
def password(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    return file


def test_nodes_are_read_through_tls_below_the_chroot_past_the_digest(
    zookeeper: SecureZooKeeper, password: Path
) -> None:
    connection = zookeeper.connection(digest_user=USER, digest_password_file=password)
    with connected(connection) as reader:
        assert reader.active_brokers() == ["b1:8080"]
        ((bundle, node),) = reader.ownerships()
    assert (bundle, node.data) == (BUNDLE, b'{"httpUrl":"http://b1:8080"}')


def test_without_the_digest_a_protected_node_is_named(zookeeper: SecureZooKeeper) -> None:
    with (
        connected(zookeeper.connection()) as reader,
        pytest.raises(ClusterUnreachable, match=f"no permission to read /namespace/{BUNDLE}: give a digest_user"),
    ):
        list(reader.ownerships())


def test_a_wrong_digest_reads_no_more_than_none(zookeeper: SecureZooKeeper, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("guess")
    connection = zookeeper.connection(digest_user=USER, digest_password_file=tmp_path / "wrong")
    with connected(connection) as reader, pytest.raises(ClusterUnreachable, match="use another digest_user") as error:
        list(reader.ownerships())
    assert "guess" not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [
        {"tls": False, "tls_ca_file": None, "tls_cert_file": None, "tls_key_file": None},
        {"tls_cert_file": None, "tls_key_file": None},
        {"tls_ca_file": None},
    ],
    ids=["no TLS", "no certificate of ours", "unknown authority"],
)
def test_whoever_does_not_fit_gets_no_session(zookeeper: SecureZooKeeper, options: dict[str, Any]) -> None:
    connection = zookeeper.connection(timeout_s=2, **options)
    with pytest.raises(ClusterUnreachable, match="no session within 2 s: check hosts"), connected(connection):
        pass


def test_the_host_name_is_checked_unless_told_otherwise(zookeeper: SecureZooKeeper) -> None:
    hosts = f"localhost:{zookeeper.port}{CHROOT}"  # the certificate holds for 127.0.0.1
    with (
        pytest.raises(ClusterUnreachable, match="and the certificates on both sides"),
        connected(zookeeper.connection(hosts=hosts, timeout_s=2)),
    ):
        pass
    with connected(zookeeper.connection(hosts=hosts, tls_verify_hostname=False)) as reader:
        assert reader.active_brokers() == ["b1:8080"]
