"""Days of the past come from a Prometheus: owners and rates as they were, what is missing named, killed or not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import documents
from prometheus_double import PrometheusDouble, Value
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.prometheus import Prometheus
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.documents.history_day import Gap, HistoryDay
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.history import imported as imported_day
from pulsar_advisor.history import scraped_cluster
from pulsar_advisor.history.columns import DAY_TABLES, NO_BROKER
from pulsar_advisor.history.exported import BUNDLES, HOST_METRICS, STARTED, TOPICS, VERSION, labels_of
from pulsar_advisor.model.cluster.bundle_range import topic_hash
from pulsar_advisor.model.errors import AdvisorError, ClusterUnreachable, DataNotFit, StorageError, UsageError
from pulsar_advisor.stages import import_history
from pulsar_advisor.stages.diff import run as diff
from pulsar_advisor.stages.export_history import run as export
from pulsar_advisor.stages.fold import run as fold
from pulsar_advisor.stages.index import fleet_row
from pulsar_advisor.stages.snapshot_lines import Recorded
from pulsar_advisor.stages.trend import run as trend
from pulsar_advisor.stages.verify_history import run as verify
from pulsar_advisor.storage.history import day_if_any, remove_day
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.days import damage
from web_server import HTTPServer
from written_tables import SNAPSHOT, broker, bundle, day_table, files_in, written

DAY_S = 86_400
TODAY_S = 1_795_219_200
"""Midnight of 2026-11-21."""
NOW_S = TODAY_S + 6 * 3600
YESTERDAY = "20261120"
HOUR = 3600
A, B = "a.example:8080", "b.example:8080"
LOW, HIGH = "t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff"
TOPIC_NAMES = [f"persistent://t/n/topic-{number}" for number in range(4)]


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer() as started:
        yield started


def snapshot(folder: Path) -> Root:
    """Two brokers, which own a bundle each."""
    return written(
        folder,
        {"identity": {"cluster_name": cluster(), "broker_ids": [A, B]}},
        brokers=[broker(name, cpu_usage=50.0, cpu_limit=100.0) for name in (A, B)],
        bundles=[
            bundle("t/n", 0, 0x80000000, A, moved=False),
            bundle("t/n", 0x80000000, 0xFFFFFFFF, B, moved=False),
        ],
    ).root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return snapshot(tmp_path / "root")


def during(value: float, *, since_s: int = 0, until_s: int = 2**40) -> Value:
    return lambda at: value if since_s <= at < until_s else None


def outside(gap: range, value: Value) -> Value:
    return lambda at: None if at in gap else value(at)


def cluster() -> str:
    return documents.manifest().identity.cluster_name


def double(*, topics: bool = True, **more: Any) -> PrometheusDouble:
    """Two brokers, four topics; `a` owns the lower half of the ring, `b` the upper one."""
    one = PrometheusDouble(NOW_S, **more)
    for instance in (A, B):
        for metric in HOST_METRICS.values():
            one.add(metric, 40 if instance == A else 20, cluster=cluster(), instance=instance)
        one.add(STARTED, 1.7e9, cluster=cluster(), instance=instance)
        one.add(VERSION, 1, cluster=cluster(), instance=instance, version="4.0.8")
    for topic in TOPIC_NAMES if topics else ():
        add_topic(one, topic, A if topic_hash(topic) < 0x80000000 else B)
    return one


def add_topic(one: PrometheusDouble, topic: str, instance: str, value: Value | float = 10, **labels: str) -> None:
    for metric in TOPICS.metrics:
        one.add(metric, value, cluster=cluster(), instance=instance, namespace="t/n", topic=topic, **labels)


def imported(
    root: Root,
    server: HTTPServer,
    one: PrometheusDouble,
    *,
    days: int = 2,
    label: tuple[str, ...] = (),
    step_s: int = HOUR,
) -> list[HistoryDay]:
    address = one.serve(server)
    with AdminTransport(AdminConnection(admin_urls=(address,)), sleep=lambda _: None) as transport:
        days_of = import_history.run(
            root,
            Prometheus(transport, now=lambda: NOW_S),
            days=days,
            step_s=step_s,
            labels=labels_of(label),
        )
        return list(days_of)


def load(root: Root, day: HistoryDay) -> dict[str, list[tuple[str | None, float]]]:
    """Owner and rate of messages in of each bundle, moment by moment."""
    rows, names, ids = (day_table(root, day, table).to_pylist() for table in ("load", "names", "brokers"))
    found: dict[str, list[tuple[str | None, float]]] = {}
    for row in rows:
        owner = None if row["owner"] == NO_BROKER else ids[row["owner"]]["id"]
        found.setdefault(names[row["bundle"]]["name"], []).append((owner, row["msg_in"]))
    return found


def topics_below(half: bool) -> int:
    return sum((topic_hash(topic) < 0x80000000) == half for topic in TOPIC_NAMES)


def files(root: Root) -> dict[str, bytes]:
    return files_in(Path(root.url) / "history")


def test_days_have_the_owners_and_rates_that_were_exported(root: Root, server: HTTPServer) -> None:
    one = double()
    yesterday, today = imported(root, server, one)
    assert (yesterday.day, len(yesterday.snapshots), len(today.snapshots)) == (YESTERDAY, 24, 6)
    assert load(root, yesterday) == {
        LOW: [(A, 10.0 * topics_below(True))] * 24,
        HIGH: [(B, 10.0 * topics_below(False))] * 24,
    }
    assert list(damage(root, yesterday, DAY_TABLES)) == []
    assert one.most_in_flight == 1
    assert all(snapshot.fit for snapshot in yesterday.snapshots)
    hosts = day_table(root, yesterday, "hosts").to_pylist()
    assert (hosts[0]["usage"], hosts[0]["version"], hosts[0]["started_at_ms"]) == (
        pytest.approx(0.4),
        "4.0.8",
        1_700_000_000_000,
    )
    assert yesterday.imported is not None
    assert (yesterday.imported.level, yesterday.imported.confidence, yesterday.imported.snapshot) == (
        "topic",
        "medium",
        SNAPSHOT,
    )


def test_a_move_is_a_change_of_owner(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    noon = TODAY_S - DAY_S // 2
    for topic in TOPIC_NAMES:
        add_topic(one, topic, A, during(1, until_s=noon))
        add_topic(one, topic, B, during(1, since_s=noon))
    yesterday, _ = imported(root, server, one)
    assert [owner for owner, _ in load(root, yesterday)[LOW]] == [A] * 12 + [B] * 12
    index = day_table(root, yesterday, "index")
    assert index["moves"].to_pylist() == [0] * 12 + [2] + [0] * 11
    assert yesterday.summary is not None
    assert yesterday.summary.moves == {"unknown": 2}


def test_a_move_at_midnight_is_of_the_day_after(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    for topic in TOPIC_NAMES:
        add_topic(one, topic, A, during(1, until_s=TODAY_S))
        add_topic(one, topic, B, during(1, since_s=TODAY_S))
    yesterday, today = imported(root, server, one)
    assert today.follows == yesterday.snapshots[-1].id
    assert today.summary is not None
    assert today.summary.moves == {"unknown": 2}


def test_a_bundle_that_no_broker_had_at_midnight_moved_from_its_last_owner(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    for topic in TOPIC_NAMES:
        add_topic(one, topic, A, during(1, until_s=TODAY_S - HOUR))
        add_topic(one, topic, B, during(1, since_s=TODAY_S))
    _, today = imported(root, server, one)
    assert today.summary is not None
    assert today.summary.moves == {"unknown": 2}


def test_a_day_from_before_the_server_scraped_is_left_out(
    root: Root, server: HTTPServer, caplog: pytest.LogCaptureFixture
) -> None:
    one = PrometheusDouble(NOW_S)
    for metric in HOST_METRICS.values():
        one.add(metric, during(40, since_s=TODAY_S), cluster=cluster(), instance=A)
    assert [day.day for day in imported(root, server, one)] == ["20261121"]
    assert f"day {YESTERDAY}: no figures were scraped" in caplog.messages


def test_a_day_that_has_only_just_begun_is_left_out(
    root: Root, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "NOW_S", TODAY_S + HOUR - 1)
    assert [day.day for day in imported(root, server, double())] == [YESTERDAY]


def test_a_gap_is_named_and_has_no_moments(root: Root, server: HTTPServer) -> None:
    one = double()
    gap = range(TODAY_S - 20 * HOUR, TODAY_S - 17 * HOUR)
    for series in one.series:
        series.value = outside(gap, series.value)
    yesterday, _ = imported(root, server, one)
    assert yesterday.imported is not None
    assert yesterday.imported.gaps == (Gap(from_ms=1000 * gap.start, to_ms=1000 * (gap.stop - HOUR)),)
    assert yesterday.line.endswith("moments without figures"), yesterday.line
    assert len(yesterday.snapshots) == 21


def test_a_moment_is_unfit_while_an_owner_reports_no_usage(root: Root, server: HTTPServer) -> None:
    one = double()
    one.series = [
        series
        for series in one.series
        if series.labels["__name__"] not in HOST_METRICS.values() or series.labels["instance"] == A
    ]
    yesterday, _ = imported(root, server, one)
    assert not any(snapshot.fit for snapshot in yesterday.snapshots)


def test_labels_that_a_scrape_replaced_are_found(root: Root, server: HTTPServer) -> None:
    one = double()
    for series in one.series:
        labels = dict(series.labels)
        if "namespace" in labels:
            labels |= {"exported_namespace": labels["namespace"], "namespace": "kubernetes"}
        series.labels = labels
    assert load(root, imported(root, server, one)[0])[LOW][0] == (A, 10.0 * topics_below(True))


def test_labels_of_another_clusters_scrape_do_not_count(root: Root, server: HTTPServer) -> None:
    one, other = double(), double()
    for series in other.series:
        replaced = {"exported_namespace": series.labels.get("namespace", ""), "namespace": "kubernetes"}
        series.labels = {**series.labels, "cluster": "other", **replaced}
    one.series = [*other.series, *one.series]
    assert load(root, imported(root, server, one)[0])[LOW][0] == (A, 10.0 * topics_below(True))


def test_another_label_is_the_instance(root: Root, server: HTTPServer) -> None:
    one = double()
    for series in one.series:
        series.labels = {**series.labels, "instance": "10.0.0.1:1", "pod": series.labels["instance"].partition(".")[0]}
    assert load(root, imported(root, server, one, label=("instance=pod",))[0])[LOW][0][0] == A


def test_a_label_that_no_broker_has_is_refused(root: Root, server: HTTPServer) -> None:
    with pytest.raises(DataNotFit, match="lack the label podd: if it has another name, give it with --label instance="):
        imported(root, server, double(), label=("instance=podd",))
    assert not [name for name in files(root) if name.startswith("result")]


def test_a_label_that_no_topic_has_is_refused(root: Root, server: HTTPServer) -> None:
    with pytest.raises(DataNotFit, match=r"^4 series of pulsar_rate_in at .* lack the label team: if it has another"):
        imported(root, server, double(), label=("namespace=team",))


def test_another_process_on_a_brokers_host_says_nothing_about_the_broker(root: Root, server: HTTPServer) -> None:
    one = double()
    noon = TODAY_S - DAY_S // 2
    for started_s, when in ((1.71e9, {"until_s": noon}), (1.72e9, {"since_s": noon})):
        one.add(STARTED, during(started_s, **when), cluster=cluster(), instance="a.example:8000", job="bookie")
    one.add(VERSION, 1, cluster=cluster(), instance="a.example:8000", job="bookie", version="4.17.1")
    day, _ = imported(root, server, one)
    hosts = day_table(root, day, "hosts")
    assert (set(hosts["version"].to_pylist()), set(hosts["started_at_ms"].to_pylist())) == ({"4.0.8"}, {1.7e12})
    assert not len(day_table(root, day, "events"))


def test_a_start_beyond_all_times_is_unknown(root: Root, server: HTTPServer) -> None:
    one = double()
    for series in one.series:
        if series.labels["__name__"] == STARTED:
            series.value = lambda _: 1e16
    day, _ = imported(root, server, one)
    hosts = day_table(root, day, "hosts")
    assert set(hosts["started_at_ms"].to_pylist()) == {None}


def test_a_broker_scraped_twice_counts_once(root: Root, server: HTTPServer) -> None:
    one = double()
    for topic in TOPIC_NAMES:
        add_topic(one, topic, (A if topic_hash(topic) < 0x80000000 else B).replace("8080", "9090"), job="again")
    assert load(root, imported(root, server, one)[0])[LOW][0] == (A, 10.0 * topics_below(True))


def test_an_instance_that_is_no_broker_any_more_keeps_its_name(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    for metric in HOST_METRICS.values():
        one.add(metric, 10, cluster=cluster(), instance="gone.example:8080")
    add_topic(one, TOPIC_NAMES[0], "gone.example:8080")
    yesterday, _ = imported(root, server, one)
    assert yesterday.imported is not None
    assert (yesterday.imported.unknown_brokers, yesterday.imported.confidence) == (("gone.example:8080",), "low")
    assert "with low confidence" in yesterday.line
    assert yesterday.line.endswith(": gone.example:8080")


def test_who_reads_imported_days_hears_how_sure_they_are(
    root: Root, server: HTTPServer, caplog: pytest.LogCaptureFixture
) -> None:
    imported(root, server, double())
    caplog.clear()
    trend(root, 28)
    assert [record.getMessage() for record in caplog.records] == [
        "imported: 2 of 2 days, 0 with low confidence; `history show` says what was guessed or left out"
    ]
    assert fleet_row(root, 28, "/{}/{}".format, Recorded()).imported == 2
    caplog.clear()
    diff(root, YESTERDAY, "latest")
    assert [record.getMessage() for record in caplog.records] == [
        f"{YESTERDAY}T230000Z is imported by topic with medium confidence"
    ]


def test_without_topics_figures_come_from_bundles(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    for metric in BUNDLES.metrics:
        one.add(metric, 7, cluster=cluster(), instance=A, bundle=HIGH)
        one.add(metric, 8, cluster=cluster(), instance=A, bundle="t/n/0x00000000_0x10000000")
    yesterday, _ = imported(root, server, one)
    assert yesterday.imported is not None
    assert (yesterday.imported.level, yesterday.imported.confidence) == ("bundle", "low")
    found = load(root, yesterday)
    assert (found[HIGH][0], found["t/n/0x00000000_0x10000000"][0]) == ((A, 7), (A, 8))


def test_a_bundle_that_was_last_scraped_just_before_the_day_has_a_place_in_it(root: Root, server: HTTPServer) -> None:
    one, parent = double(topics=False), "t/n/0x00000000_0xffffffff"
    for metric in BUNDLES.metrics:
        one.add(metric, 7, cluster=cluster(), instance=A, bundle=LOW)
        one.add(metric, during(7, until_s=TODAY_S - DAY_S + 1), cluster=cluster(), instance=A, bundle=parent)
    yesterday, _ = imported(root, server, one)
    assert [owner for owner, _ in load(root, yesterday)[parent]] == [A] + [None] * 23


def test_a_bundle_that_was_first_scraped_at_the_end_of_the_day_has_a_place_in_it(
    root: Root, server: HTTPServer
) -> None:
    one, parent = double(topics=False), "t/n/0x00000000_0xffffffff"
    for metric in BUNDLES.metrics:
        one.add(metric, during(7, until_s=TODAY_S - HOUR), cluster=cluster(), instance=A, bundle=LOW)
        one.add(metric, during(7, since_s=TODAY_S - HOUR), cluster=cluster(), instance=A, bundle=parent)
    yesterday, _ = imported(root, server, one)
    assert [owner for owner, _ in load(root, yesterday)[parent]] == [None] * 23 + [A]


def test_without_bundles_figures_come_from_namespaces_in_equal_shares(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    for metric in TOPICS.metrics:
        one.add(metric, 30, cluster=cluster(), instance=A, namespace="t/n")
        one.add(metric, 10, cluster=cluster(), instance=B, namespace="t/n")
        one.add(metric, 3, cluster=cluster(), instance=B, namespace="t/whole")
    yesterday, _ = imported(root, server, one)
    assert yesterday.imported is not None
    assert (yesterday.imported.level, yesterday.imported.unbounded_namespaces) == ("namespace", ("t/whole",))
    found = load(root, yesterday)
    assert (found[LOW][0], found[HIGH][0]) == ((None, 20), (None, 20))
    assert found["t/whole/0x00000000_0xffffffff"][0] == (B, 3)


def test_zeros_that_brokers_up_to_2_11_export_of_themselves_are_of_no_namespace(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    for metric in TOPICS.metrics:
        one.add(metric, 0, cluster=cluster(), instance=A)  # as `pulsar_rate_in{cluster="test"} 0`
        one.add(metric, 10, cluster=cluster(), instance=A, namespace="t/n")
    assert load(root, imported(root, server, one)[0])[LOW][0] == (None, 5.0)


def test_a_day_without_any_figures_of_load_says_nothing_about_traffic(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    add_topic(one, TOPIC_NAMES[0], A, during(10, since_s=TODAY_S + HOUR))
    yesterday, _ = imported(root, server, one)
    assert yesterday.imported is not None
    assert yesterday.imported.confidence == "low"
    assert {row["msg_in"] for row in day_table(root, yesterday, "hosts").to_pylist()} == {None}


def test_samples_that_are_no_figures_are_counted_and_left_out(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    add_topic(one, TOPIC_NAMES[0], A, lambda at: "NaN" if at % (2 * HOUR) else 5)
    yesterday, _ = imported(root, server, one)
    assert yesterday.imported is not None
    assert yesterday.imported.unusable_samples == 12 * len(TOPICS.metrics)
    assert f"{12 * len(TOPICS.metrics)} unusable samples" in yesterday.line


def test_a_partition_in_a_label_of_its_own_is_of_the_bundle_of_its_whole_name(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    partitions = [f"persistent://t/n/orders-partition-{number}" for number in range(4)]
    for number, topic in enumerate(partitions):
        add_topic(one, "persistent://t/n/orders", A if topic_hash(topic) < 0x80000000 else B, partition=str(number))
    low = sum(topic_hash(topic) < 0x80000000 for topic in partitions)
    found = load(root, imported(root, server, one)[0])
    assert (found[LOW][0], found[HIGH][0]) == ((A, 10.0 * low), (B, 10.0 * (4 - low)))


def test_a_segment_is_of_the_bundle_of_its_whole_name(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    segment = "segment://t/n/orders/0000-7fff-1"
    add_topic(one, segment, A)
    found = load(root, imported(root, server, one)[0])
    assert found[LOW if topic_hash(segment) < 0x80000000 else HIGH][0] == (A, 10)


def test_what_is_imported_stays_and_the_day_of_now_goes_on(root: Root, server: HTTPServer) -> None:
    one = double()
    imported(root, server, one)
    before, one.now_s = files(root), NOW_S + 2 * HOUR
    _yesterday, today = imported(root, server, one)
    assert len(today.snapshots) == 8
    assert {name: content for name, content in files(root).items() if YESTERDAY in name} == {
        name: content for name, content in before.items() if YESTERDAY in name
    }


def test_a_day_that_was_imported_to_its_end_stays_whatever_the_step(root: Root, server: HTTPServer) -> None:
    one = double()
    yesterday, _ = imported(root, server, one, step_s=7 * 60)
    assert yesterday.snapshots[-1].id == f"{YESTERDAY}T235500Z"
    assert imported(root, server, one)[0] == yesterday


def test_a_day_that_was_imported_until_its_last_minutes_goes_on(root: Root, server: HTTPServer) -> None:
    one = double()
    one.now_s = TODAY_S - 60
    assert imported(root, server, one, days=1, step_s=7 * 60)[0].snapshots[-1].id == f"{YESTERDAY}T234800Z"
    one.now_s = NOW_S
    assert imported(root, server, one, step_s=7 * 60)[0].snapshots[-1].id == f"{YESTERDAY}T235500Z"


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("questions", [3, 12, 18, 26])
def test_an_import_that_was_killed_goes_on_to_the_same_bytes(
    root: Root, server: HTTPServer, tmp_path: Path, questions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_history, "POINTS", 24)
    namespaces = ("t/m", "t/o")
    whole = double()
    for name in namespaces:
        for metric in TOPICS.metrics:
            whole.add(
                metric,
                "NaN" if name == "t/m" else 2,
                cluster=cluster(),
                instance=A,
                namespace=name,
                topic=f"persistent://{name}/x",
            )
    whole.dies_after = questions
    with pytest.raises(ClusterUnreachable):
        imported(root, server, whole, days=1)
    before = len(whole.asked)
    whole.dies_after = None
    imported(root, server, whole, days=1)
    second = len(whole.asked) - before
    copy = snapshot(tmp_path / "copy")
    imported(copy, server, whole, days=1)
    third = len(whole.asked) - before - second
    assert files(root) == files(copy)
    assert (second < third) == (questions >= 18)


def test_a_question_asks_for_no_more_points_than_stated(
    root: Root, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scraped_cluster, "POINTS", 8)
    one = double()
    yesterday, _ = imported(root, server, one)
    of_topics = [asked for asked in one.asked if asked["query"].startswith(TOPICS.metrics[0])]
    assert {(int(asked["end"]) - int(asked["start"])) // HOUR + 1 for asked in of_topics} == {2}
    assert len(load(root, yesterday)[LOW]) == 24


def test_a_day_that_was_sealed_is_sealed_when_it_is_imported_instead(root: Root, server: HTTPServer) -> None:
    open_ledger(root.ledger_url).close()
    assert fold(root.day(SNAPSHOT[:8])).is_sealed
    remove_day(root.day(SNAPSHOT[:8]))
    yesterday, today = imported(root, server, double())
    assert (yesterday.is_sealed, today.is_sealed) == (False, True)
    assert verify(root) == (2, [])


def test_a_snapshot_joins_an_imported_day(root: Root, server: HTTPServer) -> None:
    _, today = imported(root, server, double())
    assert today.day == SNAPSHOT[:8]
    day = fold(root.day(SNAPSHOT[:8]))
    assert [bool(one.manifest_sha256) for one in day.snapshots] == [False] * 6 + [True]
    assert day.imported == today.imported
    assert day_if_any(root.day(day.day)) == imported(root, server, double(), days=1)[0]


def test_a_damaged_day_is_imported_again(root: Root, server: HTTPServer) -> None:
    one = double()
    imported(root, server, one)
    whole = files(root)
    damaged = next(name for name in whole if name.startswith("load") and YESTERDAY in name)
    (Path(root.url) / "history" / damaged).write_bytes(b"")
    with pytest.raises(StorageError, match="restore them from a backup, or import the day again"):
        fold(root.day(YESTERDAY))
    imported(root, server, one)
    assert files(root) == whole


def test_a_server_of_other_clusters_is_refused(root: Root, server: HTTPServer) -> None:
    one = PrometheusDouble(NOW_S)
    one.add(HOST_METRICS["cpu_usage"], 1, cluster="other", instance=A)
    one.add(HOST_METRICS["cpu_usage"], 1, instance=B)
    with pytest.raises(DataNotFit, match="it has clusters: other"):
        imported(root, server, one)


def test_a_server_without_brokers_is_refused(root: Root, server: HTTPServer) -> None:
    with pytest.raises(DataNotFit, match="does it scrape /metrics"):
        imported(root, server, PrometheusDouble(NOW_S))


def test_a_cluster_without_snapshot_is_refused(tmp_path: Path, server: HTTPServer) -> None:
    with pytest.raises(UsageError):
        imported(Root(str(tmp_path), "test"), server, double())


def test_more_instances_than_a_cluster_has_brokers_are_refused(
    root: Root, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imported_day, "MOST_BROKERS", 1)
    with pytest.raises(DataNotFit, match="2 instances export figures of one day"):
        imported(root, server, double())


def test_a_bundle_that_is_none_is_refused(root: Root, server: HTTPServer) -> None:
    one = double(topics=False)
    for metric in BUNDLES.metrics:
        one.add(metric, 7, cluster=cluster(), instance=A, bundle="t/n/all")
    with pytest.raises(AdvisorError, match="'all' is not a bundle range"):
        imported(root, server, one)


def test_more_rows_than_memory_is_meant_for_are_refused(
    root: Root, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_history, "MOST_ROWS", 40)
    with pytest.raises(AdvisorError, match="choose a greater --step"):
        imported(root, server, double())


def test_under_pseudonyms_an_imported_day_names_no_server_broker_or_namespace(
    root: Root, server: HTTPServer, tmp_path: Path
) -> None:
    one, stranger = double(), "stranger.example:8080"
    for metric in HOST_METRICS.values():
        one.add(metric, 5, cluster=cluster(), instance=stranger)
    one.add(TOPICS.metrics[0], 5, cluster=cluster(), instance=A, namespace="t/new", topic="persistent://t/new/x")
    [day] = imported(root, server, one, days=1)
    assert day.imported is not None
    assert (day.imported.unknown_brokers, day.imported.unbounded_namespaces) == ((stranger,), ("t/new",))
    [exported] = export(root, str(tmp_path / "other"), pseudonyms=True)
    assert exported.imported is not None
    nameless = exported.imported.server, exported.imported.unknown_brokers, exported.imported.unbounded_namespaces
    assert nameless == ("", (), ())
