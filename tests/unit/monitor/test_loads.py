"""The brokers' figures from a raw snapshot and from a cluster, under each load manager."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import zstandard

from captures import capture
from pulsar_advisor.admin.metadata_store import MetadataReader
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.zookeeper import ZooKeeperConnection, ZooKeeperStore
from pulsar_advisor.model.configuration.resolved_settings import resolve_settings
from pulsar_advisor.model.errors import ClusterUnreachable, DataNotFit, UsageError
from pulsar_advisor.monitor.loads import load_now, planned_usage, watched
from pulsar_advisor.monitor.tables import ClusterLoad, broker_tables, overall
from pulsar_advisor.stages.brokers import run as load_in_snapshot
from pulsar_advisor.storage.archive import import_snapshot
from pulsar_advisor.storage.files import sha256_hex
from pulsar_advisor.storage.removal import remove_raw_files
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot
from states import BrokerRow, cluster_state
from unit.admin.fake_zookeeper import FakeKazoo
from unit.capture.fake_cluster import FakeCluster, load_report
from unit.conftest import RECORDED

EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
EMPTY = ClusterLoad("here", 0, (), {})
METRICS = [
    {"dimensions": {"metric": "bundleUnloading"}, "metrics": {"brk_lb_ignored_ack_total": 0}},
    {
        "dimensions": {"metric": "loadBalancing"},
        "metrics": {
            "brk_lb_cpu_usage": 55.5,
            "brk_lb_memory_usage": 51.0,
            "brk_lb_directMemory_usage": 12.5,
            "brk_lb_bandwidth_in_usage": 0.0,
            "brk_lb_bandwidth_out_usage": 0.0,
        },
    },
    {"dimensions": {"metric": "loadBalancing", "feature": "max_ema"}, "metrics": {"brk_lb_resource_usage": 0.1}},
    {"dimensions": {"metric": "loadBalancing", "feature": "max"}, "metrics": {"brk_lb_resource_usage": 0.555}},
]


def extensible(cluster: FakeCluster) -> CaptureOptions:
    for broker in (cluster.first, cluster.second):
        cluster.configure(broker, loadManagerClassName=EXTENSIBLE)
        broker.answers("/broker-stats/load-report", {"reason": "unsupported"}, status=500)
        broker.answers("/broker-stats/metrics", METRICS)
    return cluster.options()


def test_a_recorded_snapshot_shows_what_the_brokers_published(recorded: Snapshot) -> None:
    load = load_in_snapshot(recorded)
    assert load.missing == {}
    assert [broker.load_manager for broker in load.brokers] == ["modular"] * 3
    rounded = [tuple(round(figure or 0, 2) for figure in row.figures) for row in overall(load.brokers).brokers]
    assert rounded == [  # as monitor-brokers printed them, but for its swapped columns
        (6, 1644.42, 1536.18, 613.98, 92.75),
        (5, 575.19, 541.04, 121.02, 34.02),
        (6, 281.61, 273.78, 57.61, 15.12),
    ]


def test_the_usage_of_a_broker_that_did_not_report_is_unknown_and_not_nothing() -> None:
    state = cluster_state([BrokerRow("a:8080", cpu=(30, 100)), BrokerRow("b:8080", complete=False)], [])
    found = planned_usage(state, resolve_settings("4.0.8").values)
    assert found.usage_ratios == {"a:8080": pytest.approx(0.3), "b:8080": None}


def test_a_file_that_was_cut_short_is_named(recorded: Snapshot) -> None:
    reports = recorded.folder("raw") / "load_reports.jsonl.zst"
    reports.write_bytes(reports.read_bytes()[:100])
    with pytest.raises(DataNotFit, match=r"load_reports.jsonl.zst is not the file that was captured; copy"):
        load_in_snapshot(recorded)


def test_a_snapshot_without_raw_files_says_how_they_come_back(recorded: Snapshot) -> None:
    remove_raw_files(recorded)
    with pytest.raises(UsageError, match=r"any more: put its raw files back with `snapshots import`, or name a later"):
        load_in_snapshot(recorded)


@pytest.mark.parametrize(
    "line", [b"[]\n", b"{}\n", b'{"a":' * 50_000 + b"\n", b"\xff\n", b'{"source":"rest","broker":1}\n']
)
def test_an_archive_whose_lines_no_capture_writes_is_named(recorded: Snapshot, line: bytes) -> None:
    folder = recorded.folder("raw")
    content = zstandard.ZstdCompressor().compress(line)
    (folder / "load_reports.jsonl.zst").write_bytes(content)
    manifest = json.loads((folder / MANIFEST).read_bytes())
    for file in manifest["files"]:
        if file["surface"] == "load_reports":
            file["sha256"] = sha256_hex(content)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DataNotFit, match=r"load_reports.jsonl.zst has content that no capture writes"):
        load_in_snapshot(recorded)


@pytest.mark.parametrize(
    ("recording", "origin"),
    [
        ("modular", "reports as published in ZooKeeper"),
        ("extensible", "metrics and sums over topics from the brokers themselves"),
    ],
)
def test_a_snapshot_says_where_its_figures_come_from(recording: str, origin: str, root: Root) -> None:
    snapshot = import_snapshot(RECORDED.with_name(f"{recording}-4.0.8.tar"), root)
    assert load_in_snapshot(snapshot).where == f"cluster test, snapshot {snapshot}, {origin}"


def test_without_zookeeper_the_brokers_themselves_are_asked(cluster: FakeCluster) -> None:
    cluster.first.answers("/broker-stats/load-report", load_report(msgRateIn=3.0, msgRateOut=4.0, numBundles=1))
    load = load_now(cluster.options())
    assert "reports from the brokers themselves" in load.where
    (row,) = [row for row in overall(load.brokers).brokers if row.broker == cluster.first.id]
    assert (row.bundles, row.msg_rate_per_s, row.long_term_msg_rate_per_s) == (1, 7.0, None)


def test_a_broker_that_does_not_answer_is_named_and_the_others_shown(cluster: FakeCluster) -> None:
    cluster.second.stop()
    load = load_now(cluster.options())
    assert [broker.broker for broker in load.brokers] == [cluster.first.id]
    assert "connection refused" in load.missing[cluster.second.id]


@pytest.mark.parametrize("surface", ["brokers", "broker-time-average"])
def test_a_broker_whose_node_can_not_be_read_is_named_and_the_others_shown_as_published(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, surface: str
) -> None:
    report = json.dumps(load_report(loadReportType="LocalBrokerData", msgRateIn=3.0)).encode()
    nodes = {f"/loadbalance/brokers/{broker.id}": report for broker in (cluster.first, cluster.second)}
    nodes[f"/loadbalance/{surface}/{cluster.second.id}"] = b"{torn"

    @contextmanager
    def connected(connection: ZooKeeperConnection) -> Iterator[MetadataReader]:
        yield MetadataReader(ZooKeeperStore(FakeKazoo(nodes), connection))

    monkeypatch.setattr("pulsar_advisor.monitor.loads.connected", connected)
    load = load_now(cluster.options().model_copy(update={"zookeeper": ZooKeeperConnection(hosts="zk1:2181")}))
    assert load.where == "cluster fake, reports as published in ZooKeeper"
    assert [(broker.broker, broker.load_manager) for broker in load.brokers] == [(cluster.first.id, "modular")]
    assert list(load.missing) == [cluster.second.id]
    assert "can't decode" in load.missing[cluster.second.id]


def test_under_extensible_usage_comes_from_metrics_and_rates_from_topics(cluster: FakeCluster) -> None:
    tables = broker_tables(load_now(extensible(cluster)))
    assert "metrics and sums over topics from the brokers themselves" in tables.where
    rows = tables.brokers[0].rows
    assert (rows["SYSTEM"]["cpu_percent"], rows["SYSTEM"]["max_percent"]) == (55.5, pytest.approx(55.5))
    assert (rows["COUNT"]["bundles"], rows["LATEST"]["msg_rate_in_per_s"]) == (1, 4.5)


def test_an_extensible_snapshot_has_the_same_rates(cluster: FakeCluster, root: Root) -> None:
    snapshot = capture(extensible(cluster), root)
    live = {one.broker: one.rows["LATEST"] for one in broker_tables(load_now(cluster.options())).brokers}
    load = broker_tables(load_in_snapshot(snapshot))
    assert {one.broker: one.rows["LATEST"] for one in load.brokers} == live


def test_a_broker_of_which_a_snapshot_has_nothing_is_named_with_the_reason(cluster: FakeCluster, root: Root) -> None:
    cluster.second.stop()
    load = load_in_snapshot(capture(cluster.options(), root))
    assert [broker.broker for broker in load.brokers] == [cluster.first.id]
    assert "connection refused" in load.missing[cluster.second.id]


class Readings:
    """Gives its answers in turn, then interrupts."""

    def __init__(self, *answers: ClusterLoad | Exception) -> None:
        self._answers: Iterator[ClusterLoad | Exception] = iter(answers)

    def __call__(self) -> ClusterLoad:
        answer = next(self._answers, KeyboardInterrupt())
        if isinstance(answer, BaseException):
            raise answer
        return answer


def test_a_watch_outlives_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("pulsar_advisor.monitor.loads.time.sleep", pauses.append)
    warnings: list[str] = []

    with pytest.raises(KeyboardInterrupt):
        list(watched(Readings(EMPTY, ClusterUnreachable("gone"), EMPTY), 7, warnings.append))
    assert (warnings, pauses) == (["gone"], [7, 7, 7])


def test_without_an_interval_there_is_one_reading() -> None:
    assert list(watched(Readings(EMPTY), None, print)) == [EMPTY]


def test_a_cluster_that_can_not_be_reached_at_first_is_an_error() -> None:
    with pytest.raises(ClusterUnreachable, match="gone"):
        next(watched(Readings(ClusterUnreachable("gone")), 7, print))


def test_an_interval_below_a_second_is_refused() -> None:
    with pytest.raises(UsageError, match="--watch 0 is out of bounds: give a whole number from 1 to 86,400"):
        next(watched(Readings(EMPTY), 0, print))
