from __future__ import annotations

import ast
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from werkzeug import Request, Response

import pulsar_advisor
from harness.certificates import make_certificates
from pulsar_advisor.admin.answer import Answer, ErrorAnswer
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.metadata_store import Node
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.execution.cluster.cluster_port import ClusterPort, Override, Reply, Split, Unload
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.execution.cluster.restart_port import Published, RestartPort, published
from pulsar_advisor.model.configuration.class_names import LOAD_MANAGER_CLASSES
from pulsar_advisor.model.errors import ClusterUnreachable
from snapshots import isolation_policy
from unit.execution.doubles import NAMESPACE
from web_server import HTTPServer

MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
RANGE = "0x00000000_0x80000000"
REPORT_INTERVAL = "loadBalancerReportUpdateMaxIntervalMinutes"
UNLOADING_TIMEOUT = "namespaceBundleUnloadingTimeoutMs"
HTTP_LIBRARIES = {"requests", "urllib3", "httpx", "aiohttp", "http"}


@pytest.fixture
def cluster(httpserver: HTTPServer) -> Iterator[AdminCluster]:
    runtime = {"clusterName": "live", "loadManagerClassName": MODULAR, "brokerClientAuthenticationParameters": "secret"}
    httpserver.expect_request("/admin/v2/brokers/configuration/runtime").respond_with_json(runtime)
    connection = AdminConnection(admin_urls=(httpserver.url_for("").rstrip("/"),))
    with AdminTransport(connection, writes=True) as transport:
        yield AdminCluster(transport)


def broker_id(httpserver: HTTPServer) -> str:
    return f"{httpserver.host}:{httpserver.port}"


Sources = Mapping[str, ast.AST]
"""Path of each module in the package -> its syntax tree."""


@pytest.fixture(scope="module")
def sources() -> Sources:
    package = Path(pulsar_advisor.__file__).parent
    return {str(path.relative_to(package)): ast.parse(path.read_text("utf-8")) for path in package.rglob("*.py")}


def importers(libraries: set[str], sources: Sources) -> set[str]:
    return {
        name
        for name, tree in sources.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and libraries & {alias.name.split(".")[0] for alias in node.names})
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in libraries)
    }


def test_http_is_spoken_by_the_transport_to_an_oauth2_issuer_and_to_a_webhook_alone(sources: Sources) -> None:
    assert importers(HTTP_LIBRARIES, sources) == {
        "admin/http_session.py",
        "admin/transport.py",
        "admin/no_answer.py",  # what its errors mean
        "admin/oauth2.py",
        "admin/body.py",
        "admin/time_limit.py",
        "admin/webhook.py",
    }


def test_pulsars_client_reads_system_topics_and_publishes_only_for_the_probe(sources: Sources) -> None:
    using = importers({"pulsar"}, sources)
    made = {
        name: {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr.startswith(("create_", "subscribe", "send"))
        }
        for name, tree in sources.items()
        if name in using
    }
    assert made == {
        "admin/binary_client.py": set(),
        "capture/publications.py": {"create_reader"},
        "capture/system_topics.py": {"create_reader"},
        "execution/cluster/probe.py": {"create_producer", "send"},
    }


def test_only_this_module_has_the_transport_send_anything_but_get(sources: Sources) -> None:
    found = {
        name
        for name, tree in sources.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"request", "_exchange", "_hop"}
        and node.args
        and not (isinstance(node.args[0], ast.Constant) and node.args[0].value == "GET")
    }
    # A token request goes to the issuer and a message to the operator's own address, never to the cluster.
    assert found - {"admin/transport.py", "admin/oauth2.py", "admin/webhook.py"} == {
        "execution/cluster/cluster_writes.py"
    }


def test_only_apply_and_a_roll_open_a_connection_for_writing(sources: Sources) -> None:
    found = {
        name
        for name, tree in sources.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and "writes" in {keyword.arg for keyword in node.keywords}
    }
    assert found == {"stages/apply.py", "stages/roll.py"}


@pytest.mark.parametrize(("report_type", "kind"), [("LocalBrokerData", "modular"), ("LoadReport", "simple")])
def test_brokers_run_the_manager_that_made_their_report(
    httpserver: HTTPServer, cluster: AdminCluster, report_type: str, kind: str
) -> None:
    port: ClusterPort = cluster
    broker = broker_id(httpserver)
    httpserver.expect_request("/admin/v2/brokers/leaderBroker").respond_with_json({"brokerId": broker})
    httpserver.expect_request(f"/admin/v2/brokers/live/{broker}/ownedNamespaces").respond_with_json({})
    httpserver.expect_request("/admin/v2/broker-stats/load-report").respond_with_json({"loadReportType": report_type})
    assert (port.cluster_name(), port.load_manager()) == ("live", kind)


@pytest.mark.parametrize(
    ("status", "text", "why"),
    [(200, "ok", None), (500, "no bookie", "no bookie"), (200, "<html>Log in</html>", "expected ok"), (204, "", "204")],
)
def test_a_broker_is_asked_at_its_own_address_whether_it_is_healthy(
    httpserver: HTTPServer, cluster: AdminCluster, status: int, text: str, why: str | None
) -> None:
    broker = broker_id(httpserver)
    httpserver.expect_request(f"/admin/v2/brokers/live/{broker}/ownedNamespaces").respond_with_json({})
    httpserver.expect_request("/admin/v2/brokers/health").respond_with_data(text, status)
    found = cluster.why_unhealthy(broker)
    assert found is None if why is None else why in (found or "")


class AnotherAnswers(AdminTransport):
    """Whichever broker is asked, or none in particular, broker-2 answers."""

    def get(self, path: str, **_options: object) -> Answer:
        return Answer(200, f"https://broker-2:8443{path}", b"{}")


def test_another_brokers_health_is_not_taken_for_that_of_the_one_asked() -> None:
    transport = AnotherAnswers(AdminConnection(admin_urls=("https://pulsar:8443",)))
    assert "redirected from broker-1:8080" in (AdminCluster(transport).why_unhealthy("broker-1:8080") or "")


@pytest.mark.parametrize(
    ("report", "started_at_ms"), [({"startTimestamp": 1_700_000_000_123}, 1_700_000_000_123), ({}, None)]
)
def test_a_broker_says_since_when_it_runs_and_who_leads(
    httpserver: HTTPServer, cluster: AdminCluster, report: dict[str, int], started_at_ms: int | None
) -> None:
    port: RestartPort = cluster
    broker = broker_id(httpserver)
    httpserver.expect_request(f"/admin/v2/brokers/live/{broker}/ownedNamespaces").respond_with_json({})
    httpserver.expect_request("/admin/v2/broker-stats/load-report").respond_with_json(report)
    leader = {"brokerId": broker, "serviceUrl": f"http://{broker}"}
    httpserver.expect_request("/admin/v2/brokers/leaderBroker").respond_with_json(leader)
    assert (port.started_at_ms(broker), port.leader()) == (started_at_ms, broker)


@pytest.mark.parametrize(("dynamic", "seconds"), [({}, 900.0), ({REPORT_INTERVAL: "2"}, 120.0)])
def test_how_long_a_broker_may_take_to_publish_its_load_is_its_own_setting(
    httpserver: HTTPServer, cluster: AdminCluster, dynamic: dict[str, str], seconds: float
) -> None:
    httpserver.expect_request("/admin/v2/brokers/configuration/values").respond_with_json(dynamic)
    assert cluster.publishes_within_s() == seconds


def test_what_modular_brokers_published_is_what_their_leader_knows() -> None:
    report = b'{"bundles": ["shop/orders/0x00000000_0x80000000"], "startTimestamp": 7, "cpu": {"usage": 1.0}}'
    nodes = [("b1:8080", Node("/loadbalance/brokers/b1:8080", report, 0, 0, 0)), ("b2:8080", Node("/", b"{}", 0, 0, 0))]
    assert published(nodes) == {
        "b1:8080": Published(frozenset({"shop/orders/0x00000000_0x80000000"}), 7),
        "b2:8080": Published(frozenset(), None),
    }


def test_an_unknown_load_manager_is_named(httpserver: HTTPServer) -> None:
    broker = broker_id(httpserver)
    for path, document in (
        (
            "brokers/configuration/runtime",
            {"clusterName": "live", "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.NoopLoadManager"},
        ),
        ("brokers/leaderBroker", {"brokerId": broker}),
        (f"brokers/live/{broker}/ownedNamespaces", {}),
        ("broker-stats/load-report", {}),
    ):
        httpserver.expect_request(f"/admin/v2/{path}").respond_with_json(document)
    with (
        AdminTransport(AdminConnection(admin_urls=(httpserver.url_for("").rstrip("/"),))) as transport,
        pytest.raises(ClusterUnreachable, match="run load manager 'NoopLoadManager', not one of"),
    ):
        AdminCluster(transport).load_manager()


def test_behind_https_a_broker_is_asked_at_the_address_it_tells_not_at_its_id(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path, ["127.0.0.1"], "client")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.broker, certificates.broker_key)
    broker = "127.0.0.1:1"  # of its plain port
    answers = {
        "/configuration/runtime": {"clusterName": "live", "loadManagerClassName": MODULAR},
        f"/live/{broker}/ownedNamespaces": {},
    }
    with HTTPServer(host="127.0.0.1", ssl_context=context) as server:
        for path, document in answers.items():
            server.expect_request(f"/admin/v2/brokers{path}").respond_with_json(document)
        topics = {NAMESPACE: {RANGE: {"persistent": {"persistent://t/n/a": {}}}}}
        server.expect_request("/admin/v2/broker-stats/topics").respond_with_json(topics)
        connection = AdminConnection(
            admin_urls=(f"https://127.0.0.1:{server.port}",), tls_ca_file=certificates.authority
        )
        with AdminTransport(connection) as transport:
            assert AdminCluster(transport).loaded_topics(broker, NAMESPACE, RANGE) == ("persistent://t/n/a",)


def test_a_list_without_brokers_is_no_answer(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    httpserver.expect_request("/admin/v2/brokers/live").respond_with_json([])
    with pytest.raises(ClusterUnreachable, match="cluster 'live' has no active broker"):
        cluster.active_brokers()


def test_an_unload_goes_out_as_a_put_with_its_destination(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    httpserver.expect_request(
        f"/admin/v2/namespaces/{NAMESPACE}/{RANGE}/unload",
        method="PUT",
        query_string={"destinationBroker": "10.0.0.2:8080"},
    ).respond_with_data(status=204)
    assert cluster.send(Unload(NAMESPACE, RANGE, "10.0.0.2:8080")) == Reply(204, "")


def test_a_split_goes_out_with_its_positions_and_without_an_unload(
    httpserver: HTTPServer, cluster: AdminCluster
) -> None:
    httpserver.expect_request(
        f"/admin/v2/namespaces/{NAMESPACE}/{RANGE}/split",
        method="PUT",
        query_string={"unload": "false", "splitAlgorithmName": "specified_positions_divide"},
        json=[1073741824],
    ).respond_with_data(status=204)
    assert cluster.send(Split(NAMESPACE, RANGE, (0x40000000,))) == Reply(204, "")


@pytest.mark.parametrize(
    ("runtime", "dynamic", "expected_s"),
    [
        ({}, {}, 60.0),
        ({UNLOADING_TIMEOUT: "90000"}, {}, 90.0),
        ({UNLOADING_TIMEOUT: "9" * 5000}, {}, 60.0),
        ({UNLOADING_TIMEOUT: "60000"}, {UNLOADING_TIMEOUT: "120000"}, 120.0),
    ],
)
def test_how_long_an_unload_may_take_is_the_brokers_own_setting(
    httpserver: HTTPServer, runtime: dict[str, str], dynamic: dict[str, str], expected_s: float
) -> None:
    brokers = "/admin/v2/brokers"
    httpserver.expect_request(f"{brokers}/live").respond_with_json([broker_id(httpserver)])
    httpserver.expect_request(f"{brokers}/configuration/runtime").respond_with_json({"clusterName": "live", **runtime})
    httpserver.expect_request(f"{brokers}/configuration/values").respond_with_json(dynamic)
    with AdminTransport(AdminConnection(admin_urls=(httpserver.url_for("").rstrip("/"),))) as transport:
        assert AdminCluster(transport).unloading_timeout_s() == expected_s


@pytest.mark.parametrize(
    ("runtime", "expected_s"),
    [
        ({}, 75.0),
        ({"statsUpdateFrequencyInSecs": "240"}, 255.0),
        ({"statsUpdateFrequencyInSecs": "5"}, 75.0),
        ({"statsUpdateFrequencyInSecs": "5", "statsUpdateInitialDelayInSecs": "5"}, 20.0),
    ],
)
def test_a_new_owner_reports_topics_with_its_next_statistics_pass_or_its_first(
    httpserver: HTTPServer, runtime: dict[str, str], expected_s: float
) -> None:
    brokers = "/admin/v2/brokers"
    httpserver.expect_request(f"{brokers}/live").respond_with_json([broker_id(httpserver)])
    httpserver.expect_request(f"{brokers}/configuration/runtime").respond_with_json({"clusterName": "live", **runtime})
    httpserver.expect_request(f"{brokers}/configuration/values").respond_with_json({})
    with AdminTransport(AdminConnection(admin_urls=(httpserver.url_for("").rstrip("/"),))) as transport:
        assert AdminCluster(transport).reports_within_s() == expected_s


def test_a_refusal_of_the_broker_comes_back_as_its_reason(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    httpserver.expect_request(f"/admin/v2/namespaces/{NAMESPACE}/{RANGE}/unload").respond_with_json(
        {"reason": "Not allowed unload namespace bundle to inactive destination broker"}, status=409
    )
    reply = cluster.send(Unload(NAMESPACE, RANGE, "10.0.0.9:8080"))
    assert reply == Reply(409, "Not allowed unload namespace bundle to inactive destination broker")


def test_a_refusal_is_known_to_come_from_a_broker_to_which_another_has_passed_the_call_on(
    httpserver: HTTPServer, cluster: AdminCluster
) -> None:
    httpserver.expect_request(f"/admin/v2/namespaces/{NAMESPACE}/{RANGE}/unload").respond_with_handler(
        lambda _request: Response(status=307, headers={"Location": httpserver.url_for("/owner")})
    )
    httpserver.expect_request("/owner").respond_with_json({"reason": "token expired"}, status=401)
    assert cluster.send(Unload(NAMESPACE, RANGE, "10.0.0.9:8080")) == Reply(401, "token expired", is_redirected=True)


def test_a_name_in_a_plan_can_not_turn_its_call_into_another(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    httpserver.expect_request(re.compile(".*")).respond_with_data(status=204)
    cluster.send(Unload("shop/orders?x=", RANGE, None))
    cluster.send(Unload("shop/../..", RANGE, None))
    assert [request.path for request, _ in httpserver.log] == [f"/admin/v2/namespaces/shop/orders?x=/{RANGE}/unload"]


def test_silence_comes_back_as_no_status(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    httpserver.expect_request(f"/admin/v2/namespaces/{NAMESPACE}/{RANGE}/unload").respond_with_handler(
        lambda _request: Response(status=307, headers={"Location": "http://10.255.255.1:1/elsewhere"})
    )
    reply = cluster.send(Unload(NAMESPACE, RANGE, None))
    assert reply.status is None
    assert "is not a broker of this cluster" in reply.text


@pytest.mark.parametrize(
    ("policies", "status", "expected"),
    [
        ({"bundles": {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}}, 200, ("0x00000000", "0xffffffff")),
        ({"bundles": {"boundaries": ["0x00000000", "0xffffffff"]}, "deleted": True}, 200, ()),
        ({"reason": "Namespace does not exist"}, 404, ()),
    ],
)
def test_boundaries_are_empty_where_there_is_no_namespace(
    httpserver: HTTPServer, cluster: AdminCluster, policies: object, status: int, expected: tuple[str, ...]
) -> None:
    httpserver.expect_request(f"/admin/v2/namespaces/{NAMESPACE}").respond_with_json(policies, status=status)
    assert cluster.boundaries(NAMESPACE) == expected


@pytest.mark.parametrize("document", [{}, {"reason": "busy"}])
def test_a_document_without_boundaries_proves_no_absence(
    httpserver: HTTPServer, cluster: AdminCluster, document: object
) -> None:
    httpserver.expect_request(f"/admin/v2/namespaces/{NAMESPACE}").respond_with_json(document)
    with pytest.raises(ClusterUnreachable, match="no bundles in it"):
        cluster.boundaries(NAMESPACE)


def test_topics_of_a_bundle_are_told_by_their_hash(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    names = [f"persistent://{NAMESPACE}/{name}" for name in "abcdef"]
    httpserver.expect_request(f"/admin/v2/persistent/{NAMESPACE}").respond_with_json(names)
    httpserver.expect_request(f"/admin/v2/non-persistent/{NAMESPACE}/{RANGE}").respond_with_data(status=204)
    lower = cluster.topics(NAMESPACE, RANGE)
    httpserver.expect_request(f"/admin/v2/non-persistent/{NAMESPACE}/0x80000000_0xffffffff").respond_with_data(
        status=204
    )
    upper = cluster.topics(NAMESPACE, "0x80000000_0xffffffff")
    assert sorted((*lower, *upper)) == names
    assert lower


def test_loaded_topics_are_those_in_the_brokers_statistics(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    topic = f"persistent://{NAMESPACE}/a"
    httpserver.expect_request("/admin/v2/broker-stats/topics").respond_with_json(
        {NAMESPACE: {RANGE: {"persistent": {topic: {"msgRateIn": 1.0}}}}}
    )
    assert cluster.loaded_topics(broker_id(httpserver), NAMESPACE, RANGE) == (topic,)
    assert cluster.loaded_topics(broker_id(httpserver), NAMESPACE, "0x80000000_0xffffffff") == ()


@pytest.mark.parametrize(("is_preview", "reads"), [(True, 1), (False, 2)])
def test_a_preview_reads_the_topics_of_a_broker_once(httpserver: HTTPServer, is_preview: bool, reads: int) -> None:
    httpserver.expect_request("/admin/v2/broker-stats/topics").respond_with_json({})
    with AdminTransport(AdminConnection(admin_urls=(httpserver.url_for("").rstrip("/"),))) as transport:
        cluster = AdminCluster(transport, is_preview=is_preview)
        for _ in range(2):
            cluster.loaded_topics(broker_id(httpserver), NAMESPACE, RANGE)
    assert len([request for request, _ in httpserver.log if request.path.endswith("/topics")]) == reads


def test_reported_bundles_are_those_with_topics_in_the_brokers_statistics(
    httpserver: HTTPServer, cluster: AdminCluster
) -> None:
    httpserver.expect_request("/admin/v2/broker-stats/topics").respond_with_json(
        {NAMESPACE: {RANGE: {"non-persistent": {f"non-persistent://{NAMESPACE}/a": {}}}, "0x1_0x2": {"persistent": {}}}}
    )
    assert cluster.reported_bundles(broker_id(httpserver)) == {f"{NAMESPACE}/{RANGE}"}


@pytest.mark.parametrize(
    ("scalable", "may"),
    [
        pytest.param(None, False, id="before 5.0"),
        pytest.param([], False, id="none"),
        pytest.param([f"topic://{NAMESPACE}/st1"], True, id="one"),
    ],
)
def test_a_bundle_without_listed_topics_may_have_segments(
    httpserver: HTTPServer, cluster: AdminCluster, scalable: list[str] | None, may: bool
) -> None:
    httpserver.expect_request(f"/admin/v2/persistent/{NAMESPACE}").respond_with_json([])
    httpserver.expect_request(f"/admin/v2/non-persistent/{NAMESPACE}/{RANGE}").respond_with_data(status=204)
    list_of_them = httpserver.expect_request(f"/admin/v2/scalable/{NAMESPACE}")
    if scalable is None:
        list_of_them.respond_with_data(status=404)
    else:
        list_of_them.respond_with_json(scalable)
    assert cluster.may_have_topics(NAMESPACE, RANGE) is may


def test_a_listed_topic_is_enough_for_a_bundle_to_have_some(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    httpserver.expect_request(f"/admin/v2/persistent/{NAMESPACE}").respond_with_json([f"persistent://{NAMESPACE}/a"])
    httpserver.expect_request(f"/admin/v2/non-persistent/{NAMESPACE}/0x00000000_0xffffffff").respond_with_json([])
    assert cluster.may_have_topics(NAMESPACE, "0x00000000_0xffffffff")


def test_a_list_of_topics_that_is_refused_proves_no_empty_bundle(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    httpserver.expect_request(f"/admin/v2/persistent/{NAMESPACE}").respond_with_json([])
    httpserver.expect_request(f"/admin/v2/non-persistent/{NAMESPACE}/{RANGE}").respond_with_data(status=204)
    httpserver.expect_request(f"/admin/v2/scalable/{NAMESPACE}").respond_with_data(status=403)
    with pytest.raises(ErrorAnswer, match="403"):
        cluster.may_have_topics(NAMESPACE, RANGE)


def test_isolation_policies_keep_pulsars_order(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    policy = isolation_policy("shop/.*", r"10\.0\.0\.1", min_limit=2)
    httpserver.expect_request("/admin/v2/clusters/live/namespaceIsolationPolicies").respond_with_data(
        json.dumps({"z": policy, "a": policy}), content_type="application/json"
    )
    first, second = cluster.isolation_policies()
    assert (first.name, second.name) == ("z", "a")
    assert (first.namespaces, first.primary, first.min_limit) == (("shop/.*",), (r"10\.0\.0\.1",), 2)


def test_an_isolation_policy_with_a_limit_that_is_no_number_can_not_be_read(
    httpserver: HTTPServer, cluster: AdminCluster
) -> None:
    policy = {"auto_failover_policy": {"parameters": {"min_limit": "x"}}}
    httpserver.expect_request("/admin/v2/clusters/live/namespaceIsolationPolicies").respond_with_json({"p": policy})
    with pytest.raises(ClusterUnreachable, match=r"namespaceIsolationPolicies: can't decode .* `int`"):
        cluster.isolation_policies()


@pytest.mark.parametrize("status", [200, 204, 412, 500])
def test_an_answer_nested_without_end_is_a_reply(httpserver: HTTPServer, cluster: AdminCluster, status: int) -> None:
    httpserver.expect_request(f"/admin/v2/namespaces/{NAMESPACE}/{RANGE}/unload").respond_with_data(
        "" if status == 204 else '{"reason":' * 100_000, status=status
    )
    assert cluster.send(Unload(NAMESPACE, RANGE, None)) == Reply(status, "")


def test_an_answer_too_large_comes_back_as_no_status(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    httpserver.expect_request(f"/admin/v2/namespaces/{NAMESPACE}/{RANGE}/unload").respond_with_data(
        bytes(2 << 20), status=500
    )
    reply = cluster.send(Unload(NAMESPACE, RANGE, None))
    assert reply.status is None
    assert "is larger than" in reply.text


LISTING = "/admin/v2/namespaces/live/antiAffinity"


def spread_groups(httpserver: HTTPServer, groups: Mapping[str, str], *, listed: bool) -> None:
    """Answer with these namespaces and their anti-affinity groups; with authorization, no group can be listed."""
    tenants = sorted({name.partition("/")[0] for name in groups})
    httpserver.expect_request("/admin/v2/tenants").respond_with_json(tenants)
    for name, group in groups.items():
        httpserver.expect_request(f"/admin/v2/namespaces/{name}/antiAffinity").respond_with_data(group)
    for tenant in tenants:
        mine = [name for name in groups if name.startswith(f"{tenant}/")]
        httpserver.expect_request(f"/admin/v2/namespaces/{tenant}").respond_with_json(mine)
        for group in set(groups.values()):
            listing = httpserver.expect_request(f"{LISTING}/{group}", query_string={"tenant": tenant})
            if listed:
                listing.respond_with_json([name for name in mine if groups[name] == group])
            else:
                listing.respond_with_data(status=500)


@pytest.mark.parametrize("listed", [True, False])
def test_the_other_namespaces_of_an_anti_affinity_group_are_those_of_all_tenants(
    listed: bool, httpserver: HTTPServer, cluster: AdminCluster
) -> None:
    groups = {NAMESPACE: "spread", "shop/b": "spread", "shop/d": "", "logs/c": "spread", "logs/e": "x"}
    spread_groups(httpserver, groups, listed=listed)
    assert cluster.anti_affinity_peers(NAMESPACE) == {"shop/b", "logs/c"}


@pytest.mark.parametrize("listed", [True, False])
def test_other_tenants_are_asked_once_for_the_namespaces_of_an_anti_affinity_group(
    listed: bool, httpserver: HTTPServer, cluster: AdminCluster
) -> None:
    spread_groups(httpserver, {"shop/a": "spread", "shop/b": "spread", "logs/c": "other"}, listed=listed)
    assert [cluster.anti_affinity_peers(f"shop/{name}") for name in "ab"] == [{"shop/b"}, {"shop/a"}]
    about_logs = [request.full_path for request, _ in httpserver.log if "logs" in request.full_path]
    assert len(about_logs) == len(set(about_logs)) == (1 if listed else 2)


def test_a_broker_the_cluster_does_not_know_owns_nothing(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    broker = broker_id(httpserver)
    httpserver.expect_request(f"/admin/v2/brokers/live/{broker}/ownedNamespaces").respond_with_json(
        {"reason": "unknown broker"}, status=404
    )
    assert cluster.owned_bundles(broker) == frozenset()


def test_a_proxys_404_proves_neither_an_empty_broker_nor_a_deleted_namespace(
    httpserver: HTTPServer, cluster: AdminCluster
) -> None:
    httpserver.expect_request(re.compile("/admin/v2/.*")).respond_with_data("404 page not found", status=404)
    for ask in (lambda: cluster.owned_bundles(broker_id(httpserver)), lambda: cluster.boundaries(NAMESPACE)):
        with pytest.raises(ClusterUnreachable, match="404, not found"):
            ask()


def test_usage_is_the_weighted_maximum_of_the_load_report(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    broker = broker_id(httpserver)
    httpserver.expect_request("/admin/v2/brokers/live").respond_with_json([broker])
    httpserver.expect_request("/admin/v2/brokers/version").respond_with_data("4.0.8")
    httpserver.expect_request("/admin/v2/brokers/configuration/values").respond_with_json(
        {"loadBalancerCPUResourceWeight": "0.5"}
    )
    httpserver.expect_request("/admin/v2/broker-stats/load-report").respond_with_json(
        {"cpu": {"usage": 300.0, "limit": 400.0}, "bandwidthIn": {"usage": 30.0, "limit": 100.0}, "bundles": []}
    )
    assert cluster.usage_ratio(broker) == pytest.approx(0.375)


@pytest.mark.parametrize(
    ("phase", "migrating"),
    [
        ("COPYING", "COPYING"),
        ("PREPARATION", "PREPARATION"),
        ("VERIFYING", "VERIFYING"),
        ("NOT_STARTED", None),
        ("COMPLETED", None),
        ("FAILED", None),
    ],
)
def test_a_migration_of_the_metadata_store_is_noticed_whatever_its_phase_is_called(
    httpserver: HTTPServer, cluster: AdminCluster, phase: str, migrating: str | None
) -> None:
    httpserver.expect_request("/admin/v2/metadata/migration/status").respond_with_json({"phase": phase})
    assert cluster.migrating() == migrating


def test_a_release_without_migrations_has_none(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    httpserver.expect_request("/admin/v2/metadata/migration/status").respond_with_data(status=404)
    assert cluster.migrating() is None


def test_a_lookup_of_a_segment_names_it_whole(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    asked: list[str] = []

    def answer(request: Request) -> Response:
        asked.append(request.environ["RAW_URI"])
        return Response("{}")

    httpserver.expect_request(re.compile("/lookup/.*")).respond_with_handler(answer)
    assert cluster.look_up(f"segment://{NAMESPACE}/st1/2000-3fff-5").status == 200
    assert asked == [f"/lookup/v2/topic/segment/{NAMESPACE}/st1%2F2000-3fff-5"]


def test_a_lookup_asks_for_the_topic_as_a_client_does(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    httpserver.expect_request(f"/lookup/v2/topic/persistent/{NAMESPACE}/a b").respond_with_json(
        {"nativeUrl": "pulsar://x"}
    )
    assert cluster.look_up(f"persistent://{NAMESPACE}/a b").status == 200


def test_a_lookup_that_nobody_answers_says_so() -> None:
    connection = AdminConnection(admin_urls=("http://127.0.0.1:1",))
    with AdminTransport(connection, writes=True) as transport:
        reply = AdminCluster(transport).look_up(f"persistent://{NAMESPACE}/a")
    assert reply.status is None
    assert "127.0.0.1:1" in reply.text


@pytest.mark.parametrize(("text", "seen"), [("fALSE", "fALSE"), (" true", " true"), (" ", None)])
def test_an_override_that_is_blank_is_none(
    httpserver: HTTPServer, cluster: AdminCluster, text: str, seen: str | None
) -> None:
    setting = "loadBalancerSheddingEnabled"
    httpserver.expect_request("/admin/v2/brokers/configuration/values").respond_with_json({setting: text})
    assert cluster.override(setting) == seen
    assert cluster.override("loadBalancerAutoBundleSplitEnabled") is None


@pytest.mark.parametrize(
    ("value", "method", "path"),
    [("false", "POST", "/false"), (" true", "POST", "/ true"), (None, "DELETE", "")],
)
def test_an_override_is_posted_as_it_was_and_deleted_where_there_was_none(
    httpserver: HTTPServer, cluster: AdminCluster, value: str | None, method: str, path: str
) -> None:
    setting = "loadBalancerSheddingEnabled"
    expected = f"/admin/v2/brokers/configuration/{setting}{path}"
    httpserver.expect_request(expected, method=method, data=b"").respond_with_data(status=204)
    assert cluster.send(Override(setting, value)) == Reply(204, "")


def test_the_value_in_a_brokers_memory_is_asked_of_each(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    broker = broker_id(httpserver)
    httpserver.expect_request("/admin/v2/brokers/live").respond_with_json([broker])
    httpserver.expect_request(f"/admin/v2/brokers/live/{broker}/ownedNamespaces").respond_with_json({})
    assert cluster.effective("loadManagerClassName") == {broker: MODULAR}
    assert cluster.effective("loadBalancerSheddingEnabled") == {broker: ""}


@pytest.mark.parametrize(
    ("metrics", "usage_ratio"),
    [
        ([], None),
        ([{"metrics": {"brk_lb_bundles_split_total": 3}, "dimensions": {"metric": "bundlesSplit"}}], None),
        ([{"metrics": {"brk_lb_cpu_usage": 37.5, "brk_lb_memory_usage": 90.0, "brk_lb_bandwidth_in_usage": 0}}], 0.375),
        ([{"metrics": {"brk_lb_cpu_usage": "NaN", "brk_lb_bandwidth_in_usage": 25.0}}], 0.25),
    ],
)
def test_extensible_brokers_say_in_their_metrics_how_busy_they_are_and_nowhere_since_when_they_run(
    httpserver: HTTPServer, cluster: AdminCluster, metrics: list[object], usage_ratio: float | None
) -> None:
    httpserver.clear()
    runtime = {"clusterName": "live", "loadManagerClassName": LOAD_MANAGER_CLASSES["extensible"]}
    httpserver.expect_request("/admin/v2/brokers/configuration/runtime").respond_with_json(runtime)
    broker = broker_id(httpserver)
    httpserver.expect_request("/admin/v2/brokers/live").respond_with_json([broker])
    httpserver.expect_request("/admin/v2/brokers/version").respond_with_data("4.0.8")
    httpserver.expect_request("/admin/v2/brokers/configuration/values").respond_with_json({})
    httpserver.expect_request("/admin/v2/broker-stats/metrics").respond_with_json(metrics)
    assert (cluster.usage_ratio(broker), cluster.started_at_ms(broker)) == (usage_ratio, None)


def test_a_reply_has_when_the_call_may_be_sent_again(httpserver: HTTPServer, cluster: AdminCluster) -> None:
    unload = Unload(NAMESPACE, RANGE, None)
    httpserver.expect_request(re.compile(".*/unload")).respond_with_data(status=429, headers={"Retry-After": "7"})
    assert cluster.send(unload).retry_after_s == 7
