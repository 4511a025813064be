"""A metadata store that answers what it shouldn't: an error that names it, and no token for others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from pulsar_advisor.admin import oxia_store
from pulsar_advisor.admin.metadata_store import connected
from pulsar_advisor.admin.oxia import grpc_target
from pulsar_advisor.admin.oxia_messages import ListResponse, ReadResponse, ShardAssignments
from pulsar_advisor.model.errors import ClusterUnreachable
from unit.admin.fake_oxia import NAMESPACE, FakeOxia, Record, served, with_parents
from unit.admin.test_oxia import connection

RECORDS = with_parents({"/loadbalance/brokers/b1:8080": Record(b"one")})
NOT_TEXT = b"\x0a\x03\xff\xfe\x41"
"""A list of one key."""


@dataclass
class Hostile(FakeOxia):
    """The double, whose answers are changed as bytes."""

    changed: Callable[[str, bytes], bytes] = lambda _method, answer: answer
    times: int = 1

    def _each(self, method: str, answers: Iterator[Any]) -> Iterator[Any]:
        for answer in answers:
            for _ in range(self.times):
                yield self.changed(method, bytes(answer))

    def assignments(self, request: Any) -> Iterator[Any]:
        return self._each("assignments", super().assignments(request))

    def list(self, request: Any) -> Iterator[Any]:
        return self._each("list", super().list(request))

    def read(self, request: Any) -> Iterator[Any]:
        return self._each("read", super().read(request))


def led_by(leader: str) -> Callable[[str, bytes], bytes]:
    def change(method: str, answer: bytes) -> bytes:
        if method != "assignments":
            return answer
        assignments = ShardAssignments.FromString(answer)
        for shard in assignments.namespaces[0].value.assignments:
            shard.leader = leader
        return bytes(assignments.SerializeToString())

    return change


def of(method: str, other: bytes) -> Callable[[str, bytes], bytes]:
    return lambda asked, answer: other if asked == method else answer


def listing(*keys: str) -> bytes:
    return bytes(ListResponse(keys=list(keys)).SerializeToString())


def read_all(oxia: FakeOxia) -> None:
    with connected(connection(oxia)) as reader:
        list(reader.broker_nodes())


@pytest.mark.parametrize(
    "leader",
    ["unix:/run/other.sock", "dns://198.51.100.7/oxia:1", "", "a b:1", "host", "h:1\n", "h:0", "h:65536", "x" * 10_000],
)
def test_a_shard_is_asked_of_a_host_and_a_port_alone(leader: str) -> None:
    with (
        served(Hostile(RECORDS, changed=led_by(leader))) as oxia,
        pytest.raises(ClusterUnreachable, match="host:port") as refusal,
    ):
        read_all(oxia)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("host", ["unix", "unix-abstract", "dns", "ipv4", "vsock", "xds"])
def test_a_host_named_like_a_kind_of_address_is_a_host(host: str) -> None:
    assert grpc_target(f"{host}:8123") == f"dns:///{host}:8123"


def test_an_ipv6_address_is_one() -> None:
    assert grpc_target("[::1]:6648") == "ipv6:[::1]:6648"


def test_a_store_with_countless_shards_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oxia_store, "_MOST_SHARDS", 3)
    with served(FakeOxia(RECORDS)) as oxia, pytest.raises(ClusterUnreachable, match="it lists 4 shards, more than 3"):
        read_all(oxia)


@pytest.mark.parametrize(
    ("method", "answer", "says"),
    [
        ("list", NOT_TEXT, "a key below /loadbalance that is not text"),
        ("list", listing("/admin/clusters"), "it lists '/admin/clusters' as a child of /loadbalance"),
        ("list", listing("/loadbalance/brokers/b1:8080"), "'/loadbalance/brokers/b1:8080' as a child of /loadbalance"),
        ("list", listing("/loadbalance/"), "it lists '/loadbalance/' as a child of /loadbalance"),
        ("list", b"\xff\xff\xff", r"reading /loadbalance failed \(INTERNAL, 'Exception deserializing response!'\)"),
        ("read", b"", "0 records for 1 paths"),
        ("read", ReadResponse(gets=[{}, {}]).SerializeToString(), "2 records for 1 paths"),
        (
            "assignments",
            b"\xff\xff\xff",
            r"listing its shards failed \(INTERNAL, 'Exception deserializing response!'\)",
        ),
        ("assignments", b"\x0a\x05\x0a\x03\xff\xfe\x41", "no such namespace"),
    ],
)
def test_what_is_no_answer_is_an_error_with_the_stores_name(method: str, answer: bytes, says: str) -> None:
    with (
        served(Hostile(RECORDS, changed=of(method, answer))) as oxia,
        pytest.raises(ClusterUnreachable, match=rf"Oxia {oxia.address}/{NAMESPACE}: .*{says}"),
    ):
        read_all(oxia)


def test_a_server_that_goes_on_and_on_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oxia_store, "_LARGEST_CALL_BYTES", 1 << 20)
    many = ListResponse(keys=[f"/loadbalance/{number:09d}" for number in range(1000)]).SerializeToString()
    with (
        served(Hostile(RECORDS, changed=of("list", many), times=10_000)) as oxia,
        pytest.raises(ClusterUnreachable, match="more than 1,048,576 bytes for /loadbalance"),
    ):
        read_all(oxia)


def test_proxies_of_the_environment_get_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append(self.path)
            self.send_error(502)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Proxy) as proxy, served(FakeOxia(RECORDS)) as oxia:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        for name in ("grpc_proxy", "https_proxy", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.setenv("no_grpc_proxy", "")
        read_all(oxia)
        proxy.shutdown()
    assert asked == []
