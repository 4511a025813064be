"""The read client sends nothing but GET, never to an address that changes something, and decodes what it promises."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator

import msgspec
import pytest

from pulsar_advisor.admin.answer import Answer, ErrorAnswer
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.decoding import Document, UnreadableAnswer, decode_once
from pulsar_advisor.admin.read_client import ReadClient, topic_path
from pulsar_advisor.admin.transport import AdminTransport, Parameters
from pulsar_advisor.model.errors import ClusterUnreachable
from web_server import HTTPServer

ARGUMENTS = {
    "broker": "127.0.0.1:8080",
    "cluster_name": "standalone",
    "tenant": "public",
    "namespace": "public/default",
    "domain": "persistent",
    "topic": "persistent://public/default/a",
}
ASSIGNS_OR_WRITES = re.compile(
    r"/lookup/|/(partitioned-)?(internal-)?stats$|/health$|/internal-info$|checkAllowAutoCreation"
)


class WriteGuard(AdminTransport):
    """A transport that notes its GETs and fails on everything else."""

    def __init__(self) -> None:
        super().__init__(AdminConnection(admin_urls=("http://127.0.0.1:1",)))
        self.paths: list[str] = []

    def get(
        self, path: str, *, broker_url: str | None = None, params: Parameters | None = None, limit_bytes: int = 0
    ) -> Answer:
        self.paths.append("?".join([path, *(params or {})]))
        return Answer(200, f"http://127.0.0.1:1{path}", b"[]")

    def request(self, method: str, path: str, **_options: object) -> Answer:
        raise AssertionError(f"{method} {path}: not through get()")


READS = sorted(name for name, _ in inspect.getmembers(ReadClient, inspect.isfunction) if not name.startswith("_"))


@pytest.mark.parametrize("name", READS)
def test_every_method_sends_one_harmless_get(name: str) -> None:
    transport = WriteGuard()
    read = getattr(ReadClient(transport), name)
    # The guard's answer suits few of them; what was sent is what counts.
    with contextlib.suppress(ClusterUnreachable):
        read(*(ARGUMENTS[parameter] for parameter in inspect.signature(read).parameters))
    assert len(transport.paths) == 1
    assert not ASSIGNS_OR_WRITES.search(transport.paths[0])


def test_the_client_holds_no_way_to_send_anything_else() -> None:
    transport = WriteGuard()
    held = vars(ReadClient(transport)).values()
    assert transport not in held
    assert transport.request not in held


@pytest.fixture
def broker() -> Iterator[HTTPServer]:
    with HTTPServer(host="127.0.0.1", port=0) as server:
        yield server


@pytest.fixture
def client(broker: HTTPServer) -> ReadClient:
    return ReadClient(AdminTransport(AdminConnection(admin_urls=(broker.url_for(""),))))


def test_brokers_come_sorted(broker: HTTPServer, client: ReadClient) -> None:
    broker.expect_request("/admin/v2/brokers/standalone").respond_with_json(["b:8080", "a:8080"])
    assert client.active_brokers("standalone") == ("a:8080", "b:8080")


class OneBrokersOtherName(AdminTransport):
    """Reaches broker-1 as `pulsar`, a load balancer's name or an alias; each broker redirects to the one that owns."""

    def get(self, path: str, *, broker_url: str | None = None, **_options: object) -> Answer:
        asked, owner = broker_url or "https://pulsar:8443", path.split("/")[5].partition(":")[0]
        reached = "broker-1" if "pulsar" in asked else asked.removeprefix("https://").removesuffix(":8443")
        return Answer(200, (asked if reached == owner else f"https://{owner}:8443") + path, b"{}")


@pytest.mark.parametrize("first", ["broker-1:8080", "broker-2:8080"])
def test_a_broker_that_is_reached_under_another_name_is_asked_for_its_own(first: str) -> None:
    transport = OneBrokersOtherName(AdminConnection(admin_urls=("https://pulsar:8443",)))
    transport.trust_brokers(["broker-1:8080", "broker-2:8080"])
    for broker in sorted(("broker-1:8080", "broker-2:8080"), key=first.__ne__):
        ReadClient(transport).owned_bundles("standalone", broker)
    assert transport.web_address("broker-1:8080") == "https://broker-1:8443"
    assert transport.web_address("broker-2:8080") == "https://broker-2:8443"


def test_the_only_broker_under_another_name_keeps_it_to_itself() -> None:
    transport = OneBrokersOtherName(AdminConnection(admin_urls=("https://pulsar:8443",)))
    transport.trust_brokers(["broker-1:8080"])
    assert ReadClient(transport).owned_bundles("standalone", "broker-1:8080") == {}
    assert transport.web_address("broker-1:8080") is None


@pytest.mark.parametrize(
    ("answer", "leader"),
    [
        ({"serviceUrl": "http://a:8080", "brokerId": "a:8081"}, "a:8081"),
        ({"serviceUrl": "http://a:8080"}, "a:8080"),
    ],
)
def test_the_leader_has_an_id_from_release_3_2_on_and_a_url_before(
    broker: HTTPServer, client: ReadClient, answer: dict[str, str], leader: str
) -> None:
    broker.expect_request("/admin/v2/brokers/leaderBroker").respond_with_json(answer)
    assert client.leader() == leader


def test_there_may_be_no_leader(broker: HTTPServer, client: ReadClient) -> None:
    broker.expect_request("/admin/v2/brokers/leaderBroker").respond_with_json({"reason": "none"}, status=404)
    assert client.leader() is None


def test_no_isolation_policy_was_ever_configured(broker: HTTPServer, client: ReadClient) -> None:
    path = "/admin/v2/clusters/standalone/namespaceIsolationPolicies"
    broker.expect_request(path).respond_with_json({"reason": "none"}, status=404)
    assert client.isolation_policies("standalone").body == b"{}"


@pytest.mark.parametrize("page", ["<html>nginx</html>", "default backend - 404", '{"message": "no Route matched"}', ""])
def test_a_proxy_that_does_not_know_a_path_proves_no_absence(broker: HTTPServer, client: ReadClient, page: str) -> None:
    broker.expect_request(re.compile("/admin/v2/.*")).respond_with_data(page, status=404)
    for ask in (
        client.leader,
        lambda: client.isolation_policies("standalone"),
        lambda: client.partitions("persistent://public/default/a"),
        lambda: client.scalable_topic("topic://public/default/a"),
    ):
        with pytest.raises(ErrorAnswer, match="404, not found"):
            ask()


@pytest.mark.parametrize("status", [200, 204])
def test_a_namespace_without_anti_affinity_group_answers_with_nothing(
    broker: HTTPServer, client: ReadClient, status: int
) -> None:
    broker.expect_request("/admin/v2/namespaces/public/default/antiAffinity").respond_with_data(status=status)
    assert client.anti_affinity_group("public/default") is None


@pytest.mark.parametrize("name", ["zoo", "[zoo", "{a}", '"zoo"'])
def test_an_anti_affinity_group_is_bare_text(broker: HTTPServer, client: ReadClient, name: str) -> None:
    broker.expect_request("/admin/v2/namespaces/public/default/antiAffinity").respond_with_data(name)
    assert client.anti_affinity_group("public/default") == name


class RedirectedToAnother(AdminTransport):
    """Whichever broker is asked, another one answers."""

    def get(self, path: str, **_options: object) -> Answer:
        return Answer(200, f"http://broker-2:8080{path}", b"{}")


@pytest.mark.parametrize(
    "method", ["load_report", "broker_metrics", "broker_topics", "version", "runtime_configuration"]
)
def test_what_another_broker_says_of_itself_is_not_taken_for_the_one_asked(method: str) -> None:
    transport = RedirectedToAnother(AdminConnection(admin_urls=("http://broker-1:8080",)))
    with pytest.raises(UnreadableAnswer, match="redirected from broker-1:8080"):
        getattr(ReadClient(transport), method)("broker-1:8080")


@pytest.mark.parametrize("text", ["<html>Please log in</html>", '{"reason": "busy"}', "[]"])
def test_a_page_or_a_document_is_no_anti_affinity_group(broker: HTTPServer, client: ReadClient, text: str) -> None:
    broker.expect_request("/admin/v2/namespaces/public/default/antiAffinity").respond_with_data(text)
    with pytest.raises(UnreadableAnswer, match="expected a name"):
        client.anti_affinity_group("public/default")


def test_system_topics_are_listed_too(broker: HTTPServer, client: ReadClient) -> None:
    topics = ["persistent://public/default/__change_events"]
    listing = broker.expect_request("/admin/v2/persistent/public/default", query_string={"includeSystemTopic": "true"})
    listing.respond_with_json(topics)
    assert client.persistent_topics("public/default") == tuple(topics)


def test_the_name_of_a_topic_is_escaped_in_its_path() -> None:
    transport = WriteGuard()
    with pytest.raises(UnreadableAnswer):
        ReadClient(transport).partitions("persistent://public/default/a?b c%2F")
    assert transport.paths == ["/admin/v2/persistent/public/default/a%3Fb%20c%252F/partitions"]


@pytest.mark.parametrize(
    ("topic", "path"),
    [
        ("segment://public/default/st1/2000-3fff-5", "segment/public/default/st1%2F2000-3fff-5"),
        ("persistent://property/cluster/namespace/a b", "persistent/property/cluster/namespace%2Fa%20b"),
        ("non-persistent://public/default/ä/ö", "non-persistent/public/default/%C3%A4%2F%C3%B6"),
        ("persistent://ü/n?/a#b", "persistent/%C3%BC/n%3F/a%23b"),
        ("no topic", "no%20topic///"),
    ],
)
def test_a_topic_is_one_tenant_one_namespace_and_the_rest(topic: str, path: str) -> None:
    assert topic_path(topic) == path


def test_a_topic_deleted_in_the_meantime_has_no_partitions(broker: HTTPServer, client: ReadClient) -> None:
    broker.expect_request("/admin/v2/persistent/public/default/a/partitions").respond_with_json(
        {"reason": "Topic not found"}, status=404
    )
    assert client.partitions("persistent://public/default/a") is None


def test_a_decoding_failure_is_reported_without_the_content(broker: HTTPServer, client: ReadClient) -> None:
    broker.expect_request("/admin/v2/tenants").respond_with_json({"secret": "hunter2"})
    with pytest.raises(UnreadableAnswer, match="can't decode the response of 27 bytes") as error:
        client.tenants()
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("names", ['["a:8080@evil:80"]', '["a:8080/"]', '["http://a:8080"]', '["a"]', '["a:99999"]'])
def test_a_broker_with_an_id_that_is_no_host_and_port_is_never_asked(
    broker: HTTPServer, client: ReadClient, names: str
) -> None:
    broker.expect_request("/admin/v2/brokers/standalone").respond_with_data(names)
    with pytest.raises(UnreadableAnswer, match="brokers/standalone: can't decode"):
        client.active_brokers("standalone")


@pytest.mark.parametrize("leader", ['{"serviceUrl": "http://[bad"}', '{"serviceUrl": "http://a:8080@evil:80"}'])
def test_a_leader_at_no_address_can_not_be_read(broker: HTTPServer, client: ReadClient, leader: str) -> None:
    broker.expect_request("/admin/v2/brokers/leaderBroker").respond_with_data(leader)
    with pytest.raises(UnreadableAnswer, match="leaderBroker: can't decode"):
        client.leader()


@pytest.mark.parametrize("release", ["", "<html>", "4.0.8\x1b[2J", "9" * 5000, "4.0.8 " * 100])
def test_a_release_that_is_none_can_not_be_read(broker: HTTPServer, client: ReadClient, release: str) -> None:
    broker.expect_request("/admin/v2/brokers/version").respond_with_data(release)
    with pytest.raises(UnreadableAnswer, match=r"brokers/version: can't decode .* expected a release"):
        client.version(f"{broker.host}:{broker.port}")


def test_a_document_nested_without_end_can_not_be_read(broker: HTTPServer, client: ReadClient) -> None:
    broker.expect_request("/admin/v2/brokers/leaderBroker").respond_with_data('{"x":' + "[" * 100_000)
    with pytest.raises(UnreadableAnswer, match="leaderBroker: can't decode"):
        client.leader()


def test_a_key_twice_among_many_is_found_at_once_and_quoted_in_part() -> None:
    decoder = msgspec.json.Decoder(dict[str, int])
    longest = "k" * 10_000
    keys = [*map(str, range(100_000)), longest, longest]
    members = ",".join(f'"{key}":1' for key in keys)
    document = Document("http://broker/report", f"{{{members}}}".encode())
    with pytest.raises(UnreadableAnswer, match="appears twice") as refused:
        decode_once(document, decoder)
    assert len(str(refused.value)) < 400


def test_a_document_with_a_key_twice_can_not_be_read() -> None:
    decoder = msgspec.json.Decoder(dict[str, dict[str, float]])
    once, twice = (Document("http://broker/report", body) for body in (b'{"cpu":{"usage":1}}', b'{"cpu":{},"cpu":{}}'))
    assert decode_once(once, decoder) == {"cpu": {"usage": 1.0}}
    with pytest.raises(UnreadableAnswer, match="the key cpu appears twice"):
        decode_once(twice, decoder)


def test_every_answer_is_observed(broker: HTTPServer) -> None:
    broker.expect_request("/admin/v2/tenants").respond_with_data("[]")
    seen: list[tuple[int, int]] = []
    transport = AdminTransport(AdminConnection(admin_urls=(broker.url_for(""),)))
    ReadClient(transport, observe=lambda status, size: seen.append((status, size))).tenants()
    assert seen == [(200, 2)]
