"""Pulsar's metadata in Oxia: addresses, shards, partition keys, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from pydantic import ValidationError

from harness.certificates import make_certificates
from pulsar_advisor.admin import oxia_store
from pulsar_advisor.admin.metadata_store import MetadataReader, connected
from pulsar_advisor.admin.options import capture_options
from pulsar_advisor.admin.oxia import OxiaConnection
from pulsar_advisor.admin.oxia_store import OxiaStore
from pulsar_advisor.admin.request_budget import NotAsked, RequestBudget
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection
from pulsar_advisor.model.errors import ClusterUnreachable, UsageError
from unit.admin.fake_oxia import NAMESPACE, FakeOxia, Record, served, with_parents

RECORDS = with_parents(
    {
        "/loadbalance/brokers/b1:8080": Record(b"one", 1, 2, 9),
        "/loadbalance/brokers/b2:8080": Record(b"two"),
        "/namespace/t/n/0x00000000_0x80000000": Record(b"owner"),
        "/topics/t/n/scalable/segments/0/load": Record(b"{}", partition_key="/topics/t/n/scalable"),
    }
)


def connection(oxia: FakeOxia, **more: object) -> OxiaConnection:
    return OxiaConnection.model_validate({"url": f"oxia://{oxia.address}/{NAMESPACE}", **more})


@pytest.fixture(scope="module")
def oxia() -> Iterator[FakeOxia]:
    with served(FakeOxia(RECORDS)) as found:
        yield found


@pytest.fixture
def reader(oxia: FakeOxia) -> Iterator[MetadataReader]:
    with connected(connection(oxia)) as found:
        yield found


def test_children_of_all_shards_are_listed_and_only_they(reader: MetadataReader) -> None:
    assert reader.children("/loadbalance") == ["brokers"]
    assert reader.children("/loadbalance/brokers") == ["b1:8080", "b2:8080"]
    assert reader.children("/loadbalance/brokers/b1:8080") == []
    assert reader.children("/nothing") == []


def test_a_record_has_its_times_and_the_number_of_its_modifications(reader: MetadataReader) -> None:
    (_, node), _ = reader.broker_nodes()
    assert (node.data, node.created_at_ms, node.modified_at_ms, node.version) == (b"one", 1, 2, 9)
    assert node.document.url == "oxia:/loadbalance/brokers/b1:8080"


def test_ranges_are_found_below_their_namespaces(reader: MetadataReader) -> None:
    assert [(name, node.data) for name, node in reader.ownerships()] == [("t/n/0x00000000_0x80000000", b"owner")]


@pytest.mark.parametrize("partition_key", [f"/some/key/{number}" for number in range(6)])
def test_a_record_with_a_partition_key_is_found_in_whatever_shard(partition_key: str) -> None:
    records = with_parents({"/loadbalance/leader": Record(b"led", partition_key=partition_key)})
    with served(FakeOxia(records)) as oxia, connected(connection(oxia)) as reader:
        assert reader.children("/loadbalance") == ["leader"]
        assert [node.data for node in reader.leaders()] == [b"led"]


def test_a_record_where_its_key_belongs_is_asked_once(oxia: FakeOxia, reader: MetadataReader) -> None:
    oxia.asked.clear()
    list(reader.broker_nodes())
    read = [get.key for method, message in oxia.asked if method == "Read" for get in message.gets]
    assert sorted(read) == ["/loadbalance/brokers/b1:8080", "/loadbalance/brokers/b2:8080"]


def test_many_records_take_few_calls() -> None:
    records = with_parents({f"/loadbalance/brokers/b{number}:8080": Record(b"x") for number in range(300)})
    with served(FakeOxia(records, shards=3)) as oxia, connected(connection(oxia)) as reader:
        assert len(list(reader.broker_nodes())) == 300
    assert sum(method == "Read" for method, _ in oxia.asked) == 5 * 3


def test_reads_count_as_requests(oxia: FakeOxia) -> None:
    with connected(connection(oxia), RequestBudget(2)) as reader, pytest.raises(NotAsked):
        list(reader.broker_nodes())


def test_another_namespace_is_named() -> None:
    with (
        served(FakeOxia({})) as oxia,
        pytest.raises(ClusterUnreachable, match="/other: no such namespace"),
        connected(connection(oxia, url=f"oxia://{oxia.address}/other")),
    ):
        pass


def test_a_store_of_something_else_is_no_metadata_store() -> None:
    with (
        served(FakeOxia({})) as oxia,
        pytest.raises(ClusterUnreachable, match="no /loadbalance found"),
        connected(connection(oxia)),
    ):
        pass


def test_without_a_server_it_is_unreachable() -> None:
    with (
        pytest.raises(ClusterUnreachable, match=r"listing its shards failed \((UNAVAILABLE|DEADLINE_EXCEEDED), '.+'\)"),
        connected(OxiaConnection(url="oxia://127.0.0.1:1/x", timeout_s=1)),
    ):
        pass


def test_a_read_that_fails_names_the_path_and_quotes_the_server(oxia: FakeOxia, reader: MetadataReader) -> None:
    oxia.refuse = lambda method: grpc.StatusCode.INTERNAL if method == "Read" else None
    try:
        failed = r"reading /loadbalance/brokers/b\d:8080 failed \(INTERNAL, 'refused'\)"
        with pytest.raises(ClusterUnreachable, match=failed):
            list(reader.broker_nodes())
    finally:
        oxia.refuse = lambda _: None


@pytest.mark.parametrize("method", ["List", "Read"])
@pytest.mark.parametrize("refusal", [grpc.StatusCode.ABORTED, grpc.StatusCode.UNAVAILABLE])
def test_while_a_shard_changes_its_leader_a_read_is_repeated(
    oxia: FakeOxia, reader: MetadataReader, method: str, refusal: grpc.StatusCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oxia_store, "_ELECTION_PAUSE_S", 0)
    refusals = iter([refusal])
    monkeypatch.setattr(oxia, "refuse", lambda asked: next(refusals, None) if asked == method else None)
    oxia.asked.clear()
    assert [name for name, _ in reader.broker_nodes()] == ["b1:8080", "b2:8080"]
    assert "GetShardAssignments" in [asked for asked, _ in oxia.asked]


def test_a_shard_that_finds_no_leader_is_given_up_after_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oxia_store, "_ELECTION_PAUSE_S", 0)
    with served(FakeOxia(RECORDS)) as oxia, connected(connection(oxia, timeout_s=0.5)) as reader:
        oxia.refuse = lambda asked: grpc.StatusCode.ABORTED if asked == "Read" else None
        with pytest.raises(ClusterUnreachable, match=r"failed \(ABORTED, 'refused'\)"):
            list(reader.broker_nodes())


def test_the_time_limit_holds_for_all_servers_that_may_know_the_new_leaders(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, asked = [0.0], []
    monkeypatch.setattr(oxia_store, "time", SimpleNamespace(monotonic=lambda: now_s[0], sleep=lambda _: None))

    def hesitate(self: OxiaStore, server: str | None = None) -> None:
        asked.append(server)
        now_s[0] += 14
        raise oxia_store._LedElsewhere("UNAVAILABLE")

    with served(FakeOxia(RECORDS)) as oxia, connection(oxia).session() as store:
        assert isinstance(store, OxiaStore)
        oxia.refuse = lambda _: grpc.StatusCode.UNAVAILABLE
        store._shards = tuple(store._shards[0]._replace(leader=f"127.0.0.1:{port}") for port in range(1, 9))
        monkeypatch.setattr(OxiaStore, "look_around", hesitate)
        with pytest.raises(ClusterUnreachable):
            list(store.nodes(["/loadbalance/leader"]))
    assert len(asked) == 2


def test_a_token_is_sent_with_every_call(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    with served(FakeOxia(RECORDS, token="secret")) as oxia:
        with connected(connection(oxia, token_file=str(file))) as reader:
            assert len(list(reader.broker_nodes())) == 2
        with (
            pytest.raises(ClusterUnreachable, match=r"no permission .*: give a token_file"),
            connected(connection(oxia)),
        ):
            pass


def test_it_can_be_read_by_tls(tmp_path: Path) -> None:
    files = make_certificates(tmp_path, ["127.0.0.1"], "advisor")
    with served(FakeOxia(RECORDS), (files.broker_key, files.broker)) as oxia:
        of_tls = connection(oxia, tls=True, tls_ca_file=str(files.authority))
        with connected(of_tls) as reader:
            assert reader.children("/loadbalance/brokers") == ["b1:8080", "b2:8080"]


@pytest.mark.parametrize(
    "url", ["oxia:host:6648", "oxia://host", "oxia://host:6648/a/b", "zk:host:2181", "oxia://h:1/ö x"]
)
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="expected the form oxia://host:6648/namespace"):
        OxiaConnection(url=url)


def test_the_namespace_is_pulsars_default_unless_given() -> None:
    assert OxiaConnection(url="oxia://host:6648").namespace == "default"
    assert OxiaConnection(url="oxia://host:6648/broker").name == "Oxia host:6648/broker"


def test_a_configuration_store_is_given_as_the_brokers_have_it() -> None:
    options = capture_options(metadata_store="oxia://o:6648/b", configuration_metadata_store="zk:host:2181")
    assert options.configuration_store == ZooKeeperConnection(hosts="host:2181")
    options = capture_options(metadata_store="zk:host:2181", configuration_metadata_store="oxia://o:6648/c")
    assert options.configuration_store == OxiaConnection(url="oxia://o:6648/c")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metadata_store": "zk:h:2181", "configuration_metadata_store": "h:2181"}, "not a metadata store"),
        ({"metadata_store": "zk:h:2181", "configuration_metadata_store": "zk:"}, "not a ZooKeeper address"),
        ({"admin": {"admin_urls": ["http://b:1"]}, "configuration_metadata_store": "zk:h:1"}, "alone is not read"),
    ],
)
def test_a_configuration_store_that_cannot_be_read_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        capture_options(**given)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"token_file": "f", "token_env": "OURS"}, "give one of token_file, token_env"),
        ({"tls": True, "tls_key_file": "f"}, "tls_cert_file and tls_key_file must be given together"),
        ({"tls_ca_file": "f"}, "certificates require tls = true"),
        ({"token": "hunter2"}, "secrets are given by reference"),
    ],
)
def test_a_connection_that_can_not_be_right_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OxiaConnection(url="oxia://o:6648/broker", **fields)


def test_a_metadata_store_is_given_as_the_brokers_have_it() -> None:
    oxia = capture_options(metadata_store="oxia://host:6648/broker").metadata_store
    zookeeper = capture_options(metadata_store="zk:host:2181/chroot").metadata_store
    assert [one and one.name for one in (oxia, zookeeper)] == ["Oxia host:6648/broker", "ZooKeeper host:2181/chroot"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metadata_store": "etcd:http://host:2379"}, "Pulsar 5 has no etcd"),
        ({"metadata_store": "host:2181"}, "not a metadata store; expected zk:host:2181"),
        ({"metadata_store": "zk:a:2181", "zookeeper": "a:2181"}, "not both"),
    ],
)
def test_what_is_no_metadata_store_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        capture_options(**given)


def test_a_listing_does_not_run_out_of_time_while_it_waits_to_be_used(
    oxia: FakeOxia, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    ask = OxiaStore._ask

    def noted(store: OxiaStore, *arguments: Any) -> Any:
        calls.append(ask(store, *arguments))
        return calls[-1]

    with connection(oxia).session() as store:
        monkeypatch.setattr(OxiaStore, "_ask", noted)
        listings = store.children(["/loadbalance/brokers"] * 3)
        next(listings)
        assert [call.is_active() for call in calls] == [False] * len(calls)  # no time limit is left
        assert [names for _, names in listings] == [["b1:8080", "b2:8080"]] * 2
