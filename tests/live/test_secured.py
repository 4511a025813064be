"""Secured clusters: over https with a token from capture to apply, other credentials, and each refusal in one line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.certificates import Certificates, make_certificates
from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME, SUPER_USER_ROLE
from harness.load import running_load
from harness.shell import ADVISOR, QUICK, Answer, Shell, call
from harness.skew import wait_for_skew
from live.starting import StartCluster, with_cpu_skew
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.capture.system_topics import refusal
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.storage.root import MANIFEST

pytestmark = [pytest.mark.live, pytest.mark.full]

UNREACHABLE, USAGE = 1, 2

PASSWORD = "planted-password-51c2"
PASSWORD_HASH = "$apr1$livetest$ThNCFOCMSeI1cQ/MhCZDs1"
"""What `htpasswd -m` makes of it."""


@dataclass(frozen=True)
class Secured:
    """A secured cluster and the files that a user of it may hold."""

    cluster: LiveCluster
    certificates: Certificates
    foreign: Certificates
    """Of another authority."""
    super_user: Path
    reader: Path
    rubbish: Path
    root: Path

    @property
    def url(self) -> str:
        """Where the first broker speaks TLS."""
        return self.cluster.brokers[0].tls_admin_url

    def shell(self) -> Shell:
        """The command line as super-user, over https only."""
        urls = [word for broker in self.cluster.brokers for word in ("--admin-url", broker.tls_admin_url)]
        trust = ("--tls-ca-file", str(self.certificates.authority), "--token-file", str(self.super_user))
        return Shell(self.root, (*urls, *trust, "--zookeeper", self.cluster.zookeeper))


@pytest.fixture(scope="module")
def secured(secured_cluster: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Secured:
    folder = tmp_path_factory.mktemp("secured")
    tokens, certificates = secured_cluster.tokens, secured_cluster.certificates
    assert tokens is not None
    assert certificates is not None
    for name, token in (("super-user", tokens.super_user), ("reader", tokens.reader), ("rubbish", "rubbish")):
        (folder / name).write_text(token)
    return Secured(
        cluster=secured_cluster,
        certificates=certificates,
        foreign=make_certificates(folder / "foreign", ["127.0.0.1"], "admin"),
        super_user=folder / "super-user",
        reader=folder / "reader",
        rubbish=folder / "rubbish",
        root=folder / "root",
    )


def test_from_capture_to_verify_over_https_with_a_token(secured: Secured) -> None:
    cluster, shell = secured.cluster, secured.shell()
    with_cpu_skew(cluster)
    with running_load(cluster):
        wait_for_skew(cluster.admin)
        examined = call([str(ADVISOR), "doctor", *shell.connection])
        assert examined.code == 0, examined.out
        strategies = ("--shedder", "ThresholdShedder", "--placement", "LeastLongTermMessageRate", "--no-splits")
        wishes = (*strategies, "--max-unloads", "1", "--as", "olive")
        ran = shell("run", *shell.connection, *wishes, "--master", "local[2]", "--json")
        assert ran.code == 0, ran.err
        assert shell.document("raw", MANIFEST)["missing"] == []

        advice = ran.document["advice"]
        path = shell.root / "plans" / "cluster=live" / f"snapshot={ran.document['snapshot']}" / advice["plan"]
        (unload,) = json.loads(path.read_bytes())["steps"]
        approved = shell("approve", str(path), "--digest", advice["digest"], "--as", "bob", *QUICK)
        assert approved.code == 0, approved.err
        applied = shell("apply", str(path), *shell.connection, "--json")
        assert applied.code == 0, applied.err
        assert [step["state"] for step in applied.document["steps"]] == ["confirmed"]
        bundle = f"{unload['namespace']}/{unload['bundle']}"
        assert cluster.admin.owners(CLUSTER_NAME)[bundle] == unload["destination"]
        verified = shell("verify", str(path), *shell.connection, "--master", "local[2]", "--json")
        assert verified.code == 0, verified.err


def test_a_client_certificate_of_our_authority_is_enough(secured: Secured) -> None:
    def answer(client: Certificates) -> tuple[Shell, Answer]:
        way = ("--tls-cert-file", str(client.client), "--tls-key-file", str(client.client_key))
        trust = ("--tls-ca-file", str(secured.certificates.authority))
        shell = Shell(secured.root.with_name(f"root-of-{client.client.parent.name}"), ())
        return shell, shell(
            "capture", "--admin-url", secured.url, *trust, *way, "--zookeeper", secured.cluster.zookeeper
        )

    shell, ours = answer(secured.certificates)
    assert ours.code == 0, ours.err
    manifest = shell.document("raw", MANIFEST)
    assert manifest["identity"]["broker_ids"] == sorted(secured.cluster.broker_ids)
    assert (manifest["missing"], manifest["failures"]) == ([], [])

    shell, foreign = answer(secured.foreign)
    (line,) = foreign.err.splitlines()
    assert (foreign.code, line.startswith(f"error: {secured.url}: ")) == (UNREACHABLE, True), foreign
    assert not shell.root.exists()


def test_the_other_namespaces_of_an_anti_affinity_group_are_found_with_authorization(secured: Secured) -> None:
    admin, members = secured.cluster.admin, ("spread/a", "spread/b")
    admin.write("PUT", "/tenants/spread", body={"allowedClusters": [CLUSTER_NAME], "adminRoles": []})
    for namespace in (*members, "spread/c"):
        admin.write("PUT", f"/namespaces/{namespace}", body={"bundles": {"numBundles": 1}})
    for namespace in members:
        admin.write("POST", f"/namespaces/{namespace}/antiAffinity", body="group")
    connection = AdminConnection(admin_urls=(admin.urls[0],), token_file=secured.super_user)
    with AdminTransport(connection) as transport:
        assert AdminCluster(transport).anti_affinity_peers("spread/a") == {"spread/b"}


def test_system_topics_are_read_over_tls_with_a_token(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(
        ClusterOptions(brokers=1, load_manager="extensible", token_authentication=True, tls=True, cpu_sensor=False)
    )
    (broker,) = cluster.brokers
    tokens, certificates = cluster.tokens, cluster.certificates
    assert tokens is not None
    assert certificates is not None
    for name, token in (("super-user", tokens.super_user), ("reader", tokens.reader)):
        (tmp_path / name).write_text(token)
    cluster.admin.look_up("persistent://public/default/anything")  # assigns a bundle: something to report
    way = ("--admin-url", broker.tls_admin_url, "--tls-ca-file", str(certificates.authority))
    shell = Shell(tmp_path / "root", (*way, "--service-url", broker.tls_service_url, "--zookeeper", cluster.zookeeper))
    captured = shell("capture", *shell.connection, "--token-file", str(tmp_path / "super-user"))
    assert captured.code == 0, captured.err
    manifest = shell.document("raw", MANIFEST)
    assert [entry for entry in manifest["missing"] if not entry["reason"].startswith("not available")] == []
    (states,) = [file for file in manifest["files"] if file["surface"] == "service_unit_states"]
    assert states["rows"] > 0

    by_name = broker.tls_service_url.replace("127.0.0.1", "localhost")
    connection = AdminConnection(
        admin_urls=(broker.tls_admin_url,), tls_ca_file=certificates.authority, token_file=tmp_path / "super-user"
    )
    messages = {url: refused(connection, url) for url in (broker.tls_service_url, by_name)}
    assert messages[broker.tls_service_url] is None
    assert (messages[by_name] or "").startswith(f"{by_name}: ")
    reader = connection.model_copy(update={"token_file": tmp_path / "reader"})
    assert "the role may not consume in pulsar/system" in (refused(reader, broker.tls_service_url) or "")


def test_a_user_with_a_password_captures_all_and_a_wrong_password_is_one_line(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    providers = ",".join(
        f"org.apache.pulsar.broker.authentication.AuthenticationProvider{way}" for way in ("Token", "Basic")
    )  # brokers call each other with a token
    (tmp_path / "htpasswd").write_text(f"{SUPER_USER_ROLE}:{PASSWORD_HASH}\n")
    cluster = start_cluster(
        ClusterOptions(
            brokers=1,
            load_manager="extensible",
            token_authentication=True,
            cpu_sensor=False,
            settings={"authenticationProviders": providers, "basicAuthConf": str(tmp_path / "htpasswd")},
        )
    )
    cluster.admin.look_up("persistent://public/default/anything")  # assigns a bundle: something to report
    (tmp_path / "config.toml").write_text(
        f"""
        [profiles.basic]
        service_url = "{cluster.service_url}"
        zookeeper.hosts = "{cluster.zookeeper}"

        [profiles.basic.admin]
        admin_urls = {cluster.admin_urls}
        basic_user = "{SUPER_USER_ROLE}"
        basic_password_file = "{tmp_path / "password"}"
        """
    )
    shell = Shell(tmp_path / "root", ("--profile", "basic", "--config", str(tmp_path / "config.toml")))
    (tmp_path / "password").write_text("another\n")
    answer = shell("capture", *shell.connection)
    (line,) = answer.err.splitlines()
    assert (answer.code, answer.out, "credentials rejected" in line) == (UNREACHABLE, "", True), answer
    assert not shell.root.exists()

    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    captured = shell("capture", *shell.connection)
    assert captured.code == 0, captured.err
    manifest = shell.document("raw", MANIFEST)
    assert [entry for entry in manifest["missing"] if not entry["reason"].startswith("not available")] == []
    assert {"service_unit_states", "topic_stats"} <= {file["surface"] for file in manifest["files"] if file["rows"]}
    content = b"".join(path.read_bytes() for path in shell.root.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in content


def refused(connection: AdminConnection, service_url: str) -> str | None:
    with AdminTransport(connection) as transport:
        return refusal(transport, service_url)


def test_a_way_in_that_does_not_hold_is_refused_in_one_clear_line(secured: Secured) -> None:
    ours, others = str(secured.certificates.authority), str(secured.foreign.authority)
    first, port = secured.cluster.brokers[0], secured.url.rpartition(":")[2]
    plain_port = first.admin_url.replace("http://", "https://")
    by_name = f"https://localhost:{port}"
    super_user, reader, rubbish = (str(file) for file in (secured.super_user, secured.reader, secured.rubbish))
    cases = {
        "no CA": ((secured.url, "--token-file", super_user), UNREACHABLE, "unable to get local issuer certificate"),
        "other CA": ((secured.url, "--tls-ca-file", others, "--token-file", super_user), UNREACHABLE, "TLS failed"),
        "no such CA file": ((secured.url, "--tls-ca-file", f"{ours}.gone"), USAGE, "does not exist"),
        "wrong host name": ((by_name, "--tls-ca-file", ours, "--token-file", super_user), UNREACHABLE, "'localhost'"),
        "plain port": ((plain_port, "--tls-ca-file", ours, "--token-file", super_user), UNREACHABLE, "https port"),
        "no token": ((secured.url, "--tls-ca-file", ours), UNREACHABLE, "credentials required: give the token file"),
        "bad token": (
            (secured.url, "--tls-ca-file", ours, "--token-file", rubbish),
            UNREACHABLE,
            "credentials rejected",
        ),
        "no rights": (
            (secured.url, "--tls-ca-file", ours, "--token-file", reader),
            UNREACHABLE,
            "the role lacks permission",
        ),
    }
    shell = Shell(secured.root.with_name("refused"), ())
    for case, (words, code, messages) in cases.items():
        answer = shell("capture", "--admin-url", *words)
        (line,) = answer.err.splitlines()
        assert (answer.code, answer.out, messages in line) == (code, "", True), (case, answer)
    assert not shell.root.exists()
