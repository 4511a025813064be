"""Raw snapshots through Spark into tables and cluster states: a clean one, a damaged one, and one of real brokers."""

import json
import random
import shutil
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import documents
from pulsar_advisor.model.cluster.bundle_range import contains, topic_hash
from pulsar_advisor.model.cluster.cluster_state import AVERAGES_ORIGINS, FIGURES, NO_ROW, ClusterState
from pulsar_advisor.model.errors import DataNotFit, Refused, StorageError
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.lease import LEASE, held
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root
from pulsar_advisor.tables.columns import Table
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.schemas import TABLES
from pulsar_advisor.tables.settings_inputs import settings_inputs
from pulsar_advisor.tables.state import cluster_state
from scalable_topics import Segment, scalable_topic, split
from snapshots import RATES, RawSnapshot, equal_boundaries, skewed_modular_cluster

pytestmark = pytest.mark.spark

REAL_SNAPSHOT = Path(__file__).parents[1] / "data" / "recorded" / "modular-4.0.8.tar"
"""Three real brokers with a skewed load, captured by the product itself."""


class Normalized:
    """A raw snapshot with its tables."""

    def __init__(self, spark: SparkSession, folder: Path, raw: RawSnapshot) -> None:
        self.raw = raw
        self.snapshot = raw.write(Root(str(folder), "test"))
        self.result = normalize(spark, self.snapshot)

    def rows(self, table: str, **wanted: Any) -> list[dict[str, Any]]:
        rows = read_table(self.snapshot, table)
        for column, value in wanted.items():
            rows = rows.filter(pc.field(column) == value)
        found: list[dict[str, Any]] = rows.to_pylist()
        return found

    def bundle(self, bundle: str, view: str = "fresh") -> dict[str, Any]:
        (row,) = self.rows("bundles", bundle=bundle, view=view)
        return row


@pytest.fixture(scope="module")
def clean(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Normalized:
    return Normalized(spark, tmp_path_factory.mktemp("clean"), skewed_modular_cluster())


@pytest.fixture(scope="module")
def state(clean: Normalized) -> ClusterState:
    return cluster_state(clean.snapshot)


def bundle_index(state: ClusterState, name: str) -> int:
    return next(index for index in range(len(state.bundles)) if state.bundle_name(index) == name)


def test_every_column_that_is_declared_as_never_null_has_no_nulls(clean: Normalized) -> None:
    nulls = {
        f"{table.name}.{column.name}"
        for table in TABLES
        for column in table.columns
        if not column.nullable and read_table(clean.snapshot, table.name)[column.name].null_count
    }
    assert nulls == set()


@pytest.mark.parametrize("table", [table for table in TABLES if table.key], ids=lambda table: table.name)
def test_keys_are_unique(clean: Normalized, table: Any) -> None:
    keys = [tuple(row[column] for column in table.key) for row in clean.rows(table.name)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_comments_are_in_the_files(clean: Normalized, table: Table) -> None:
    schema = read_table(clean.snapshot, table.name).schema
    spark_schema = json.loads(schema.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    comments = {field["name"]: field["metadata"].get("comment") for field in spark_schema["fields"]}
    assert comments == {column.name: column.comment for column in table.columns}


def test_the_state_says_what_the_reports_say(clean: Normalized, state: ClusterState) -> None:
    for index, broker in enumerate(state.brokers.ids):
        report = clean.raw.broker_report(broker)
        assert state.brokers.usage[index, 0] == report["cpu"]["usage"]
        assert state.brokers.traffic[index].tolist() == [report[figure] for figure in FIGURES]
        assert state.brokers.bundles[index] == len(report["bundles"])
        for bundle, stats in report["lastStats"].items():
            row = bundle_index(state, bundle)
            assert state.bundles.owner[row] == index
            assert state.bundles.traffic[row].tolist() == [stats[figure] for figure in FIGURES]


def test_the_published_view_has_zookeepers_figures(clean: Normalized) -> None:
    published = cluster_state(clean.snapshot, "published")
    report = clean.raw.broker_report(published.brokers.ids[0], "zookeeper")
    assert published.brokers.traffic[0].tolist() == [report[figure] for figure in FIGURES]
    assert published.brokers.report_updated_at_ms[0] == report["lastUpdate"]


def test_rows_are_sorted_and_topics_lie_where_their_hash_says(state: ClusterState) -> None:
    bundles = state.bundles
    names = [(state.namespaces.names[n], int(low)) for n, low in zip(bundles.namespace, bundles.lower, strict=True)]
    assert names == sorted(names)
    assert list(state.brokers.ids) == sorted(state.brokers.ids)
    for row, topic in enumerate(state.topics.names):
        assert state.topics.hash[row] == topic_hash(topic)
        bundle = state.topics.bundle[row]
        assert bundles.namespace[bundle] == state.topics.namespace[row]
        assert contains(int(bundles.lower[bundle]), int(bundles.upper[bundle]), int(state.topics.hash[row]))


def test_all_topics_are_there_loaded_or_not(clean: Normalized, state: ClusterState) -> None:
    named = {line["topic"] for line in clean.raw.lines["topic_names"]}
    assert set(state.topics.names) == named
    idle = {topic for topic, loaded in zip(state.topics.names, state.topics.loaded, strict=True) if not loaded}
    assert idle == {topic for topic in named if topic.endswith("-idle")}
    assert "topic_names" not in state.missing


UNREAD_LAYOUT = "topic://shop/orders/unread"


@pytest.fixture(scope="module")
def scalable(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Normalized, list[Segment]]:
    """Topics of every depth: some have one segment, others were split and merged until segments have one key hash.

    Beside them one whose layout was not read.
    """
    chance = random.Random(11)
    names = [f"topic://shop/{('orders', 'payments')[number % 2]}/clicks-{number}" for number in range(40)]
    segments = [one for number, name in enumerate(names) for one in scalable_topic(name, number, chance)]
    deep = scalable_topic("topic://shop/orders/deep", 0, chance)
    while deep[-2:][0].end > deep[-2:][0].start:
        deep = split(deep, deep[-2:][0])
    segments += deep
    without_layout = scalable_topic(UNREAD_LAYOUT, 1, chance)
    raw = skewed_modular_cluster(version="5.0.1", segments=[*segments, *without_layout])
    raw.lines["segments"] = [line for line in raw.lines["segments"] if line["scalableTopic"] != UNREAD_LAYOUT]
    return Normalized(spark, tmp_path_factory.mktemp("scalable"), raw), segments


def test_bundles_are_the_sums_of_their_topics_with_segments_of_all_depths(
    scalable: tuple[Normalized, list[Segment]],
) -> None:
    normalized, segments = scalable
    assert {(one.end - one.start + 1).bit_length() for one in segments} == set(range(1, 18))
    state = cluster_state(normalized.snapshot)
    topics, bundles = state.topics, state.bundles
    held = topics.loaded & (topics.bundle != NO_ROW)
    assert (topics.bundle[topics.segments.row] != NO_ROW).all()
    for figure in range(len(FIGURES)):
        sums = np.bincount(topics.bundle[held], weights=topics.traffic[held, figure], minlength=len(bundles))
        assert sums == pytest.approx(bundles.traffic[:, figure], abs=0.001)
    assert np.bincount(topics.bundle[held], minlength=len(bundles)).tolist() == bundles.topics.tolist()


def test_segments_have_their_own_domain_and_lineage_loaded_or_not(
    scalable: tuple[Normalized, list[Segment]],
) -> None:
    normalized, segments = scalable
    of_segments = normalized.rows("topics", domain="segment")
    rows = {row["topic"]: row for row in of_segments if row["scalable_topic"] != UNREAD_LAYOUT}
    assert rows.keys() == {segment.name for segment in segments}
    for segment in segments:
        row = rows[segment.name]
        assert (row["scalable_topic"], row["segment_id"]) == (segment.topic, segment.id)
        assert (row["named"], row["loaded"], row["segment_state"]) == (True, segment.state == "ACTIVE", segment.state)
        assert (tuple(row["segment_parents"]), tuple(row["segment_children"])) == (segment.parents, segment.children)


def test_a_segment_that_is_loaded_and_in_no_layout_is_not_lost(scalable: tuple[Normalized, list[Segment]]) -> None:
    rows = scalable[0].rows("topics", domain="segment", scalable_topic=UNREAD_LAYOUT)
    assert len(rows) == 2
    assert {(row["loaded"], row["named"], row["segment_state"]) for row in rows} == {(True, False, None)}


def test_unowned_bundles_are_normal_and_carry_pulsars_defaults(state: ClusterState) -> None:
    row = bundle_index(state, "public/default/0x00000000_0x10000000")
    assert state.bundles.owner[row] == NO_ROW
    assert not state.bundles.reported[row]
    assert state.bundles.long_term[row].tolist() == [50.0, 50.0, 50_000.0, 50_000.0]
    assert AVERAGES_ORIGINS[state.bundles.averages_origin[row]] == "default"


def test_a_heartbeat_namespace_has_one_bundle_with_the_full_range(clean: Normalized) -> None:
    row = clean.bundle("pulsar/broker-1.pulsar.test:8080/0x00000000_0xffffffff")
    assert (row["kind"], row["in_boundaries"], row["owner"]) == ("heartbeat", True, "broker-1.pulsar.test:8080")


def test_settings_come_from_the_leader(clean: Normalized) -> None:
    version, runtime, dynamic = settings_inputs(clean.snapshot)
    assert (version, dynamic) == ("4.0.8", {})
    assert runtime["loadBalancerBrokerOverloadedThresholdPercentage"] == "85"


def test_a_second_run_leaves_the_tables_as_they_are(spark: SparkSession, clean: Normalized) -> None:
    path = clean.snapshot.folder("tables/result") / RESULT
    before = path.stat().st_mtime_ns
    assert normalize(spark, clean.snapshot) == clean.result
    assert path.stat().st_mtime_ns == before


def test_tables_of_another_manifest_are_not_taken_for_these(spark: SparkSession, tmp_path: Path) -> None:
    snapshot = skewed_modular_cluster().write(Root(str(tmp_path), "test"))
    result = snapshot.folder("tables/result") / RESULT
    write_file(result, documents.tables_result().content())
    with pytest.raises(StorageError, match="made from another manifest"):
        normalize(spark, snapshot)


def test_a_manifest_that_counts_other_lines_than_there_are_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    snapshot = skewed_modular_cluster().write(Root(str(tmp_path), "test"))
    path = snapshot.folder("raw") / MANIFEST
    manifest = json.loads(path.read_text())
    next(file for file in manifest["files"] if file["path"] == "topic_names.jsonl.zst")["rows"] += 1
    path.write_text(json.dumps(manifest))
    with pytest.raises(DataNotFit, match=r"topic_names.jsonl.zst has \d+ lines, its manifest says"):
        normalize(spark, snapshot)
    assert not (snapshot.folder("tables/result") / RESULT).exists()


@pytest.mark.full
def test_of_two_at_once_the_second_is_refused_and_the_next_replaces_what_a_killed_one_left(
    spark: SparkSession, clean: Normalized, tmp_path: Path
) -> None:
    snapshot = skewed_modular_cluster().write(Root(str(tmp_path), "test"))
    result = snapshot.folder("tables/result")
    with held(result, snapshot.id, "the tables are being made"), pytest.raises(Refused, match="by another process"):
        normalize(spark, snapshot)
    assert not snapshot.folder("tables/topics").exists()
    half = snapshot.folder("tables/topics") / "_temporary" / "0"
    half.mkdir(parents=True)
    topics = next(Path(str(clean.snapshot.folder("tables/topics"))).glob("*.parquet"))
    (half.parent.parent / "part-of-a-killed-one.parquet").write_bytes(topics.read_bytes())
    assert normalize(spark, snapshot) == clean.result
    assert not half.exists()
    assert [path.name for path in result.iterdir()] == [RESULT]


@pytest.mark.full
def test_whoever_was_overtaken_leaves_the_tables_of_the_new_writer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = skewed_modular_cluster().write(Root(str(tmp_path), "test"))
    theirs = [snapshot.folder(f"tables/{table.name}") / "theirs.parquet" for table in TABLES]

    def suspended(*_: object) -> None:
        (snapshot.folder("tables/result") / LEASE).unlink()
        for table in theirs:
            write_file(table, b"")

    monkeypatch.setattr("pulsar_advisor.stages.normalize.check_counts", suspended)
    with pytest.raises(Refused, match="was taken over by another process"):
        normalize(spark, snapshot)
    assert all(table.exists() for table in theirs)


MOVED = "shop/orders/0x00000000_0x20000000"
SPLIT_CHILD = "shop/payments/0x00000000_0x20000000"
SPLIT_PARENT = "shop/payments/0x00000000_0x40000000"


TAKEN_LATELY, TAKEN_AT_A_START = "shop/orders/0x40000000_0x60000000", "shop/orders/0x60000000_0x80000000"
ACQUIRED = {
    TAKEN_LATELY: 600_000,
    TAKEN_AT_A_START: 1_800_000,
    "pulsar/broker-3.pulsar.test:8080/0x00000000_0xffffffff": 1_680_000,
}
"""Milliseconds before the snapshot."""


@pytest.fixture(scope="module")
def damaged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Normalized:
    """One snapshot with everything that goes wrong in a real cluster, each in a place of its own."""
    raw = skewed_modular_cluster()
    lines, first, second = raw.lines, "broker-1.pulsar.test:8080", "broker-2.pulsar.test:8080"
    # moved from the first to the second broker since the last statistics pass; both reports have it
    for line in lines["owned_bundles"]:
        if line["bundle"] == MOVED and line["pass"] == "end":
            line["broker"] = second
    raw.broker_report(second)["lastStats"][MOVED] = {**raw.broker_report(first)["lastStats"][MOVED], "topics": 99}
    losing = raw.broker_report(first)
    # Up to 2.11 a Modular report names its `lastStats` `bundleStats`, too.
    losing |= {"lastBundleLosses": [MOVED], "bundleStats": losing["lastStats"]}
    # acquired from another broker, and while a broker started again: its heartbeat bundle shows when
    for line in lines["owned_bundles"]:
        if line["source"] == "zookeeper" and line["bundle"] in ACQUIRED:
            line["acquiredAt"] = raw.head["started_at_ms"] - ACQUIRED[line["bundle"]]
    # a split that the reports don't know of yet
    edges = sorted({*equal_boundaries(4), 0x20000000})
    for surface in ("namespaces", "local_policies"):
        for line in lines[surface]:
            if line["namespace"] == "shop/payments":
                line["document"]["bundles"] = {"boundaries": [f"0x{edge:08x}" for edge in edges], "numBundles": 5}
    # averages: written long ago, and of a range that is gone
    for line in lines["bundle_data"]:
        if line["bundle"] == "shop/orders/0x20000000_0x40000000":
            line["modifiedAt"] -= 3_600_000
    # a namespace on its way out
    lines["namespaces"].append({"namespace": "shop/gone", "antiAffinityGroup": None, "document": {"deleted": True}})
    # unreadable: half a line, a number that is a word, a name that is none
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines["topic_stats/2"])
    raw.raw_text["topic_stats/2"] = text[: len(text) - 40]
    lines["failure_domains"] = [{"domain": "rack-1", "brokers": [first]}, {"domain": "rack-2", "brokers": "all"}]
    lines["owned_bundles"].append({**lines["owned_bundles"][0], "bundle": "shop/orders/0xnonsense", "pass": "end"})
    # a figure that is not a number, as Jackson writes it
    raw.broker_report("broker-3.pulsar.test:8080")["cpu"]["usage"] = "NaN"
    lines["isolation_policies"] = [
        {
            "name": name,
            "document": {
                "namespaces": ["shop/.*"],
                "primary": ["broker-1.*"],
                "auto_failover_policy": {
                    "policy_type": "min_available",
                    "parameters": {"min_limit": "1", "usage_threshold": "80"},
                },
            },
        }
        for name in ("zebra", "aardvark")
    ]
    raw.head["missing"] = [{"surface": "topic_names", "broker": None, "reason": "403 from the admin API"}]
    raw.head["incomplete_brokers"] = [second]
    raw.head["reads"] = [
        {"surface": surface, "target": target, "started_at_ms": started, "finished_at_ms": finished}
        for surface, target, started, finished in (
            ("topic_stats", first, 1_000, 1_900),
            ("topic_stats", second, 1_200, 1_500),
            ("namespaces", first, 2_000, 2_100),
            ("namespaces", second, 1_950, 2_050),
        )
    ]
    return Normalized(spark, tmp_path_factory.mktemp("damaged"), raw)


def test_a_bundle_that_moved_stands_once_with_its_owners_figures(damaged: Normalized) -> None:
    row = damaged.bundle(MOVED)
    assert row["owner"] == row["figures_broker"] == "broker-2.pulsar.test:8080"
    assert row["topics"] == 99
    assert row["reported_by"] == ["broker-1.pulsar.test:8080", "broker-2.pulsar.test:8080"]


def test_what_a_broker_answers_that_it_lost_it_may_have_lost_until_it_answered(damaged: Normalized) -> None:
    row = damaged.bundle(MOVED)
    read_at_ms = next(line["readAt"] for line in damaged.raw.lines["load_reports"] if line["source"] == "rest")
    assert (row["last_unloaded_at_ms"], row["last_unloaded_origin"]) == (read_at_ms, "report_losses")


def test_figures_without_a_range_are_kept_beside_the_ranges(damaged: Normalized) -> None:
    parent, child = damaged.bundle(SPLIT_PARENT), damaged.bundle(SPLIT_CHILD)
    assert (parent["in_boundaries"], parent["reported"]) == (False, True)
    assert (child["in_boundaries"], child["reported"]) == (True, False)
    state = cluster_state(damaged.snapshot)
    ranges = {state.bundle_name(bundle) for bundle in state.topics.bundle if bundle != NO_ROW}
    assert SPLIT_CHILD in ranges
    assert SPLIT_PARENT not in ranges


def test_stored_averages_are_used_only_while_fresh_and_of_a_range_that_exists(damaged: Normalized) -> None:
    stale, gone, kept = (
        damaged.bundle(bundle)
        for bundle in ("shop/orders/0x20000000_0x40000000", SPLIT_PARENT, "shop/orders/0x40000000_0x60000000")
    )
    assert [row["averages_origin"] for row in (stale, gone, kept)] == ["one_sample", "one_sample", "bundle_data"]
    assert (stale["short_term_samples"], stale["short_term_msg_rate_in_per_s"]) == (1, stale["msg_rate_in_per_s"])


def test_a_bundle_acquired_from_another_broker_was_unloaded_then(damaged: Normalized) -> None:
    row = damaged.bundle(TAKEN_LATELY)
    acquired_at_ms = damaged.raw.head["started_at_ms"] - ACQUIRED[TAKEN_LATELY]
    assert (row["last_unloaded_origin"], row["last_unloaded_at_ms"]) == ("owner_acquired", acquired_at_ms)


def test_a_bundle_acquired_because_a_broker_started_was_not_unloaded(damaged: Normalized) -> None:
    assert damaged.bundle(TAKEN_AT_A_START)["last_unloaded_at_ms"] is None


def test_a_namespace_being_deleted_has_no_bundles(damaged: Normalized) -> None:
    assert damaged.rows("namespaces", namespace="shop/gone")[0]["deleted"]
    assert damaged.rows("bundles", namespace="shop/gone") == []
    assert "shop/gone" not in cluster_state(damaged.snapshot).namespaces.names


def test_what_cannot_be_read_is_a_problem_and_costs_nothing_else(damaged: Normalized) -> None:
    problems = {(row["problem"], row["surface"], row["broker"]) for row in damaged.rows("problems")}
    assert problems == {
        ("unreadable_line", "topic_stats", "broker-3.pulsar.test:8080"),
        ("unreadable_line", "failure_domains", None),
        ("bad_name", "owned_bundles", damaged.raw.lines["owned_bundles"][0]["broker"]),
        ("missing", "topic_names", None),
    }
    read = {row["path"]: (row["rows"], row["unreadable_rows"]) for row in damaged.rows("documents")}
    assert read["topic_stats/2.jsonl.zst"] == (len(damaged.raw.lines["topic_stats/2"]), 1)
    loaded = sum(len(lines) for name, lines in damaged.raw.lines.items() if name.startswith("topic_stats/"))
    assert len(damaged.rows("topics", loaded=True)) == loaded - 1


@pytest.mark.parametrize(
    ("path", "times"),
    [
        ("topic_stats/1.jsonl.zst", (1_200, 1_500)),
        ("namespaces.jsonl.zst", (1_950, 2_100)),
        ("settings.jsonl.zst", (None, None)),
    ],
    ids=["of one broker", "of several reads", "of none that is known"],
)
def test_each_raw_file_has_the_times_of_its_reads(
    damaged: Normalized, path: str, times: tuple[int | None, int | None]
) -> None:
    (row,) = damaged.rows("documents", path=path)
    assert (row["read_started_at_ms"], row["read_finished_at_ms"]) == times


def test_every_line_is_a_row_or_a_problem(damaged: Normalized) -> None:
    documents = [row for row in damaged.rows("documents") if row["surface"] == "topic_stats"]
    reports = sum(row["reports"] for row in damaged.rows("topics"))
    assert reports + sum(row["unreadable_rows"] for row in documents) == sum(row["rows"] for row in documents)


def test_a_number_that_is_none_arrives_as_such(damaged: Normalized) -> None:
    state = cluster_state(damaged.snapshot)
    assert np.isnan(state.brokers.usage[2, 0])


def test_the_manifest_decides_who_is_complete_and_whether_topics_are_known(damaged: Normalized) -> None:
    state = cluster_state(damaged.snapshot)
    rows = read_table(damaged.snapshot, "brokers", state.view).sort_by("broker")
    assert rows["complete"].to_pylist() == [True, False, True]
    assert state.brokers.complete.all()  # a check doubts the second one: what it reported is taken as it is
    assert "topic_names" in state.missing


def test_policies_keep_the_order_in_which_pulsar_gave_them(damaged: Normalized) -> None:
    state = cluster_state(damaged.snapshot)
    assert [(policy.name, policy.min_limit, policy.usage_threshold) for policy in state.isolation_policies] == [
        ("zebra", 1, 80),
        ("aardvark", 1, 80),
    ]
    assert state.failure_domains == ("rack-1", None, None)


@pytest.fixture(scope="module")
def admin_api_only(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Normalized:
    raw = skewed_modular_cluster(zookeeper=False, brokers=2)
    return Normalized(spark, tmp_path_factory.mktemp("rest"), raw)


@pytest.mark.full
def test_without_zookeeper_there_is_the_fresh_view_only(admin_api_only: Normalized) -> None:
    state = cluster_state(admin_api_only.snapshot)
    owned = state.bundles.owner != NO_ROW
    assert owned.sum() == sum(len(admin_api_only.raw.broker_report(broker)["bundles"]) for broker in state.brokers.ids)
    assert {AVERAGES_ORIGINS[origin] for origin in state.bundles.averages_origin[owned]} == {"one_sample"}
    with pytest.raises(DataNotFit, match=r"no view 'published'.*use the fresh view"):
        cluster_state(admin_api_only.snapshot, "published")


@pytest.fixture(scope="module")
def real(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ClusterState:
    snapshot = Root(str(tmp_path_factory.mktemp("real")), "sample").snapshot("20261121T110437Z")
    folder = Path(str(snapshot.folder("raw")))
    with tarfile.open(REAL_SNAPSHOT) as archive:
        archive.extractall(folder, filter="data")
    result = normalize(spark, snapshot)
    assert result.problems == 0
    return cluster_state(snapshot)


@pytest.mark.full
def test_real_brokers_bundles_are_the_sums_of_their_topics_but_for_cut_decimals(real: ClusterState) -> None:
    sums = np.zeros_like(real.bundles.traffic)
    loaded = real.topics.loaded
    np.add.at(sums, real.topics.bundle[loaded], real.topics.traffic[loaded])
    cut = 0.001 * np.maximum(real.bundles.topics, 1)[:, None]
    assert (np.abs(real.bundles.traffic - sums) <= cut + 1e-9)[real.bundles.reported].all()


@pytest.mark.full
def test_real_brokers_totals_are_the_sums_of_their_bundles(real: ClusterState) -> None:
    owned = real.bundles.owner != NO_ROW
    sums = np.zeros_like(real.brokers.traffic)
    np.add.at(sums, real.bundles.owner[owned], real.bundles.traffic[owned])
    np.testing.assert_allclose(sums, real.brokers.traffic, rtol=1e-9)


@pytest.mark.full
def test_every_real_topic_lies_in_a_bundle(real: ClusterState) -> None:
    assert len(real.topics) > 0
    assert (real.topics.bundle != NO_ROW).all()
    assert len(RATES) == real.topics.traffic.shape[1]


FIRST = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
BUSY, FORGOTTEN = "shop/orders/0x20000000_0x40000000", "shop/orders/0x40000000_0x60000000"
STORED = "shop/orders/0x60000000_0x80000000"


class SecondOfTwo(Normalized):
    """The second of two snapshots in one root, after its `change`.

    The leader has stored the averages of two bundles, and deleted those of one.
    """

    def __init__(
        self, spark: SparkSession, folder: Path, gap: timedelta, change: Callable[[RawSnapshot], None]
    ) -> None:
        first, second = (skewed_modular_cluster(started_at=FIRST + after) for after in (timedelta(), gap))
        for raw, stored in ((first, {FORGOTTEN, STORED}), (second, {STORED})):
            raw.lines["bundle_data"] = [line for line in raw.lines["bundle_data"] if line["bundle"] in stored]
        # Its last report in ZooKeeper, which names the loss, is still the same at the second snapshot.
        for raw in (first, second):
            report = raw.broker_report("broker-2.pulsar.test:8080", "zookeeper")
            report |= {"lastBundleLosses": [LOST_BEFORE], "lastUpdate": first.head["started_at_ms"] - 60_000}
        first.broker_report(owner_of(first, REPORTED_LATE))["bundles"].remove(REPORTED_LATE)
        self.before = Normalized(spark, folder, first)
        change(second)
        super().__init__(spark, folder, second)


def take_over(raw: RawSnapshot) -> None:
    """Twice the message rate on one bundle; another owner of a second one; a third came back to its own."""
    for report in (line["document"] for line in raw.lines["load_reports"]):
        if BUSY in report["lastStats"]:
            report["lastStats"][BUSY]["msgRateIn"] *= 2
    for line in raw.lines["owned_bundles"]:
        if line["bundle"] == TAKEN_OVER:
            line["broker"] = "broker-1.pulsar.test:8080"
    raw.broker_report(owner_of(raw, CAME_BACK))["lastBundleGains"] = [CAME_BACK, REPORTED_LATE]
    loser = "broker-1.pulsar.test:8080"
    assert owner_of(raw, LOST_AND_TAKEN) == loser
    raw.broker_report(loser, "zookeeper")["lastBundleLosses"].append(LOST_AND_TAKEN)
    raw.broker_report("broker-2.pulsar.test:8080")["lastBundleGains"].append(LOST_AND_TAKEN)
    for line in raw.lines["owned_bundles"]:
        if line["bundle"] == LOST_AND_TAKEN:
            line["broker"] = "broker-2.pulsar.test:8080"


TAKEN_OVER, CAME_BACK = "shop/payments/0x00000000_0x40000000", "shop/payments/0x40000000_0x80000000"
REPORTED_LATE = "shop/payments/0xc0000000_0xffffffff"
"""Owned by the same broker at the first snapshot, but only listed by it at the second."""
LOST_BEFORE, LOST_AND_TAKEN = "shop/payments/0x80000000_0xc0000000", "shop/orders/0xa0000000_0xc0000000"


def owner_of(raw: RawSnapshot, bundle: str) -> str:
    return next(str(line["broker"]) for line in raw.lines["owned_bundles"] if line["bundle"] == bundle)


@pytest.fixture(scope="module")
def second(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SecondOfTwo:
    return SecondOfTwo(spark, tmp_path_factory.mktemp("two"), timedelta(minutes=15), take_over)


@pytest.mark.full
def test_averages_that_nobody_stored_go_on_from_the_snapshot_before(second: SecondOfTwo) -> None:
    before, row = (one.bundle(BUSY, "published") for one in (second.before, second))
    assert (before["averages_origin"], row["averages_origin"]) == ("one_sample", "folded")
    for term in ("short_term", "long_term"):
        # Two of the three brokers wrote a report since.
        assert row[f"{term}_samples"] == 1 + 2
        assert row[f"{term}_msg_rate_in_per_s"] == pytest.approx((1 + 2 * 2) / 3 * before["msg_rate_in_per_s"])


@pytest.mark.full
def test_averages_whose_node_the_leader_deleted_begin_anew(second: SecondOfTwo) -> None:
    before, row = second.before.bundle(FORGOTTEN), second.bundle(FORGOTTEN)
    assert (before["averages_origin"], row["averages_origin"]) == ("bundle_data", "one_sample")
    assert (row["long_term_samples"], row["long_term_msg_rate_in_per_s"]) == (1, row["msg_rate_in_per_s"])


@pytest.mark.full
def test_the_result_names_the_snapshot_it_goes_on_from(second: SecondOfTwo) -> None:
    assert second.before.result.earlier_snapshot is None
    assert second.result.earlier_snapshot == second.before.snapshot.id


@pytest.mark.full
def test_an_earlier_snapshot_whose_bundles_are_gone_is_none(spark: SparkSession, tmp_path: Path) -> None:
    def lose(_: RawSnapshot) -> None:
        (bundles,) = tmp_path.rglob("tables/bundles/*/*")
        shutil.rmtree(bundles)

    lost = SecondOfTwo(spark, tmp_path, timedelta(minutes=15), lose)
    assert lost.result.earlier_snapshot is None
    assert lost.bundle(BUSY)["averages_origin"] == "one_sample"


@pytest.mark.full
def test_another_owner_than_before_is_a_recent_unload(second: SecondOfTwo) -> None:
    row = second.bundle(TAKEN_OVER)
    assert (row["last_unloaded_origin"], row["last_unloaded_at_ms"]) == (
        "owner_changed",
        second.raw.head["started_at_ms"],
    )


@pytest.mark.full
def test_a_bundle_gained_that_had_an_owner_before_is_a_recent_unload(second: SecondOfTwo) -> None:
    row = second.bundle(CAME_BACK)
    read_at_ms = next(line["readAt"] for line in second.raw.lines["load_reports"] if line["source"] == "rest")
    assert (row["last_unloaded_origin"], row["last_unloaded_at_ms"]) == ("report_gains", read_at_ms)


@pytest.mark.full
def test_an_unload_had_happened_by_the_first_time_at_which_it_shows(second: SecondOfTwo) -> None:
    row = second.bundle(LOST_AND_TAKEN)
    lost_in_zookeeper = second.raw.broker_report("broker-1.pulsar.test:8080", "zookeeper")["lastUpdate"]
    assert (row["last_unloaded_origin"], row["last_unloaded_at_ms"]) == ("report_losses", lost_in_zookeeper)


@pytest.mark.full
def test_a_loss_that_the_snapshot_before_knows_is_not_dated_anew(second: SecondOfTwo) -> None:
    row = second.bundle(LOST_BEFORE)
    assert row["last_unloaded_at_ms"] == second.before.bundle(LOST_BEFORE)["last_unloaded_at_ms"] is not None


@pytest.mark.full
def test_a_gain_that_is_reported_late_is_no_unload(second: SecondOfTwo) -> None:
    assert second.bundle(REPORTED_LATE)["last_unloaded_at_ms"] is None


@pytest.mark.full
def test_a_bundle_that_stayed_was_not_unloaded(second: SecondOfTwo) -> None:
    assert second.bundle(BUSY)["last_unloaded_at_ms"] is None


@pytest.mark.full
def test_after_a_long_gap_averages_begin_anew(spark: SparkSession, tmp_path: Path) -> None:
    second = SecondOfTwo(spark, tmp_path, timedelta(days=2), take_over)
    assert second.bundle(BUSY)["averages_origin"] == "one_sample"
    assert second.bundle(TAKEN_OVER)["last_unloaded_at_ms"] is None
