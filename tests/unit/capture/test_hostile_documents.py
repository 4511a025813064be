"""Whatever a document holds, a decoder gives what it promises or says that it can't: with where it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.admin.read_client import Document, ReadClient, UnreadableAnswer, decode
from pulsar_advisor.admin.transport import AdminConnection, AdminTransport, Answer
from pulsar_advisor.capture import documents
from pulsar_advisor.capture.raw_files import RawFile
from pulsar_advisor.capture.service_unit_state import SERVICE_UNIT_STATE
from pulsar_advisor.capture.topic_decoders import topic_file
from pulsar_advisor.execution.cluster_writes import AdminCluster
from pulsar_advisor.model.errors import ClusterUnreachable
from unit.admin.mutated import answers, mutated, nodes

WHERE = "http://127.0.0.1:8080/x"
STATE = b'{"state":"Owned","dstBroker":"a:8080","sourceBroker":null,"timestamp":1795249800000,"versionId":3}'


def decoded(decoder: msgspec.json.Decoder[Any]) -> Callable[[Document], Any]:
    return lambda document: decode(document, decoder)


def ownership(document: Document) -> str | None:
    return decode(document, documents.OWNERSHIP_NODE).owner


def leader(document: Document) -> str | None:
    return decode(document, documents.LEADER_NODE).leader


DECODERS: dict[str, tuple[tuple[bytes, ...], Callable[[Document], Any]]] = {
    "topics": (answers("/broker-stats/topics"), lambda document: topic_file("b", document)),
    "metrics": (answers("/broker-stats/metrics"), documents.broker_metrics),
    "load report": (answers("/load-report") + nodes("/loadbalance/brokers"), decoded(documents.LOAD_REPORT)),
    "policies": (answers("/shy/data"), decoded(documents.POLICIES)),
    "isolation": (answers("/namespaceIsolationPolicies"), decoded(documents.ISOLATION_POLICIES)),
    "local policies": (nodes("/admin/local-policies"), decoded(documents.LOCAL_POLICIES)),
    "bundle data": (nodes("/loadbalance/bundle-data"), decoded(documents.BUNDLE_DATA)),
    "averages": (nodes("/loadbalance/broker-time-average"), decoded(documents.BROKER_TIME_AVERAGE)),
    "quota": ((b'{"msgRateIn":40.0,"msgRateOut":120.0,"dynamic":true}',), decoded(documents.RESOURCE_QUOTA)),
    "ownership": (nodes("/namespace/"), ownership),
    "leader": (nodes("/loadbalance/leader"), leader),
    "service unit state": ((STATE,), decoded(SERVICE_UNIT_STATE)),
}


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.data())
def test_a_decoder_gives_lines_or_says_that_it_can_not(name: str, data: st.DataObject) -> None:
    seeds, decoder = DECODERS[name]
    assert seeds
    body = data.draw(mutated(seeds))
    try:
        found = decoder(Document(WHERE, body))
    except UnreadableAnswer as error:
        assert str(error).startswith(f"{WHERE}: can't decode the response of {len(body)} bytes: ")
        return
    RawFile().extend([{"document": found}] if name != "topics" else [])


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("topics", b'{"a/b":{"0x00000000_0xffffffff":{"persistent":{"persistent://a/b/\xff":{}}}}}'),
        ("topics", b'{"a/b":{"0x00000000_0xffffffff":{"persistent":{"persistent://a/b/c":' + b'{"x":' * 100_000),
        ("ownership", b'{"httpUrl":"http://[bad"}'),
        ("ownership", b'{"httpUrl":"http://a:8080@evil:80"}'),
        ("leader", b'{"serviceUrl":"http://[bad"}'),
        ("load report", b'{"x":' + b"[" * 100_000),
    ],
)
def test_what_ended_a_capture_once_can_not_be_read(name: str, body: bytes) -> None:
    with pytest.raises(UnreadableAnswer, match=f"^{WHERE}: can't decode"):
        DECODERS[name][1](Document(WHERE, body))


class Answering(AdminTransport):
    """Answers every call with one body."""

    def __init__(self, body: bytes) -> None:
        super().__init__(AdminConnection(admin_urls=("http://127.0.0.1:8080",)), writes=True)
        self.body = body

    def get(self, path: str, **_options: object) -> Answer:
        return Answer(200, f"http://127.0.0.1:8080{path}", self.body)

    def request(self, method: str, path: str, **_options: object) -> Answer:
        return self.get(path)


def of_the_client(body: bytes) -> Iterator[Callable[[], object]]:
    client = ReadClient(Answering(body))
    yield client.runtime_configuration
    yield lambda: client.version("127.0.0.1:8080")
    yield lambda: client.active_brokers("c")
    yield client.leader
    yield lambda: client.owned_bundles("c", "127.0.0.1:8080")
    yield lambda: client.boundaries("a/b")
    yield lambda: client.failure_domains("c")
    yield client.tenants
    yield lambda: client.partitions("persistent://a/b/c")


def of_the_executor(body: bytes) -> Iterator[Callable[[], object]]:
    cluster = AdminCluster(Answering(body))
    yield cluster.cluster_name
    yield cluster.load_manager
    yield lambda: cluster.boundaries("a/b")
    yield lambda: cluster.loaded_topics("127.0.0.1:8080", "a/b", "0x00000000_0xffffffff")
    yield lambda: cluster.topics("a/b", "0x00000000_0xffffffff")
    yield cluster.isolation_policies
    yield lambda: cluster.anti_affinity_peers("a/b")
    yield lambda: cluster.usage_ratio("127.0.0.1:8080")
    yield lambda: cluster.look_up("persistent://a/b/c")


@given(body=mutated(answers("")))
def test_every_read_gives_an_answer_or_one_of_our_errors_that_names_the_place(body: bytes) -> None:
    for read in (*of_the_client(body), *of_the_executor(body)):
        try:
            read()
        except ClusterUnreachable as error:
            assert "127.0.0.1:8080/" in str(error) or "the brokers run load manager" in str(error)


@given(body=mutated(answers("")), status=st.sampled_from((400, 409, 412, 429, 500, 503)))
def test_every_error_answer_has_a_reason_of_one_inert_line(body: bytes, status: int) -> None:
    assert Answer(status, WHERE, body).reason.isprintable()
