"""The state that is made of a snapshot's tables."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import documents
from pulsar_advisor.model.cluster.cluster_state import NO_ROW
from pulsar_advisor.model.errors import DataNotFit, StorageError, UsageError
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import RESULT
from pulsar_advisor.tables.read_table import read_table, readable_files
from pulsar_advisor.tables.schemas import TABLES
from pulsar_advisor.tables.settings_inputs import settings_inputs, settings_inputs_of_oldest
from pulsar_advisor.tables.state import cluster_state
from written_tables import CLUSTER_SURFACES, SNAPSHOT, Row, broker, bundle, topic, written

ADDED_LATER = {
    "averages_folded_samples",
    "averages_unknown_samples",
    "publishes_every_ms",
    "scalable_topic",
    "segment_id",
    "segment_state",
    "segment_parents",
    "segment_children",
    "controller_msg_rate_in_per_s",
    "controller_msg_rate_out_per_s",
    "controller_msg_throughput_in_bytes_per_s",
    "controller_msg_throughput_out_bytes_per_s",
    "controller_load_modified_at_ms",
}


def test_rows_are_sorted_and_refer_to_each_other_by_index(tmp_path: Path) -> None:
    snapshot = written(
        tmp_path,
        brokers=[broker("b:8080", is_leader=True, start_timestamp_ms=7), broker("a:8080")],
        namespaces=[{"namespace": "t/two", "deleted": False}, {"namespace": "t/one", "deleted": False}],
        bundles=[
            bundle("t/two", 0, 0xFFFFFFFF, "a:8080"),
            bundle("t/one", 8, 0xFFFFFFFF),
            bundle("t/one", 0, 8, "b:8080"),
        ],
    )
    state = cluster_state(snapshot)
    assert state.brokers.ids == ("a:8080", "b:8080")
    assert (state.leader, state.brokers.started_at_ms.tolist()) == (1, [0, 7])
    assert [state.bundle_name(row) for row in range(3)] == [
        "t/one/0x00000000_0x00000008",
        "t/one/0x00000008_0xffffffff",
        "t/two/0x00000000_0xffffffff",
    ]
    assert state.bundles.owner.tolist() == [1, NO_ROW, 0]


def test_an_owner_that_is_no_broker_of_the_snapshot_is_nobody(tmp_path: Path) -> None:
    snapshot = written(tmp_path, brokers=[broker("a:8080")], bundles=[bundle("t/n", 0, 8, "dead:8080")])
    assert cluster_state(snapshot).bundles.owner.tolist() == [NO_ROW]


def test_the_unloads_of_users_bundles_are_known(tmp_path: Path) -> None:
    bundles = [
        bundle("t/n", 0, 8, "a:8080", kind="user", last_unloaded_at_ms=7),
        bundle("t/n", 8, 16, "a:8080", kind="user"),
        bundle("pulsar/system", 0, 8, "a:8080", kind="system", last_unloaded_at_ms=9),
    ]
    snapshot = written(tmp_path, brokers=[broker("a:8080")], bundles=bundles)
    assert cluster_state(snapshot).users_unloads_at_ms == {"t/n/0x00000000_0x00000008": 7}


def test_without_topics_a_state_differs_in_nothing_else(tmp_path: Path) -> None:
    snapshot = written(
        tmp_path,
        brokers=[broker("a:8080")],
        namespaces=[{"namespace": "t/n", "deleted": False}],
        bundles=[bundle("t/n", 0, 0xFFFFFFFF, "a:8080", topics=1)],
        topics=[topic("persistent://t/n/one", 0)],
    )
    whole, part = cluster_state(snapshot), cluster_state(snapshot, with_topics=False)
    assert (len(whole.topics), len(part.topics)) == (1, 0)
    assert part.bundles.topics.tolist() == [1]
    assert part.namespaces.names == whole.namespaces.names


def test_what_nobody_reported_counts_as_zero_and_a_nan_stays_one(tmp_path: Path) -> None:
    snapshot = written(tmp_path, brokers=[broker("a:8080", cpu_usage=float("nan"))], bundles=[bundle("t/n", 0, 8)])
    state = cluster_state(snapshot)
    assert np.isnan(state.brokers.usage[0, 0])
    assert state.brokers.limit[0].tolist() == [0.0] * 5
    assert state.bundles.traffic[0].tolist() == [0.0] * 4


def test_a_topic_belongs_to_a_range_of_the_boundaries_only(tmp_path: Path) -> None:
    snapshot = written(
        tmp_path,
        brokers=[broker("a:8080")],
        bundles=[
            bundle("t/n", 0, 0xFFFFFFFF, in_boundaries=False),
            bundle("t/n", 0, 0x80000000),
            bundle("t/n", 0x80000000, 0xFFFFFFFF),
        ],
        topics=[
            topic("persistent://t/n/upper", 0x80000000),
            topic("persistent://t/n/lower", 0),
            topic("persistent://t/x/lost", None),
        ],
    )
    state = cluster_state(snapshot)
    ranges = {
        name: None if bundle == NO_ROW else state.bundle_range(int(bundle))
        for name, bundle in zip(state.topics.names, state.topics.bundle, strict=True)
    }
    assert ranges == {
        "persistent://t/n/lower": "0x00000000_0x80000000",
        "persistent://t/n/upper": "0x80000000_0xffffffff",
        "persistent://t/x/lost": None,
    }


def test_a_cluster_without_bundles_or_topics_is_a_state_too(tmp_path: Path) -> None:
    state = cluster_state(written(tmp_path, brokers=[broker("a:8080")], topics=[topic("persistent://t/n/x", 0)]))
    assert len(state.bundles) == 0
    assert state.topics.bundle.tolist() == [NO_ROW]


def test_brokers_that_a_failed_warning_doubts_stay_in_and_are_marked(tmp_path: Path) -> None:
    snapshot = written(tmp_path, brokers=[broker("a:8080"), broker("b:8080"), broker("c:8080")])
    results = [
        documents.check(severity="warning", scope="broker", concerned=["b:8080"]),
        documents.check(severity="info", scope="broker", concerned=["c:8080"]),
    ]
    write_file(snapshot.folder("validation") / RESULT, documents.validation(*results).content())
    brokers = cluster_state(snapshot).brokers
    assert brokers.complete.all()
    assert brokers.doubtful.tolist() == [False, True, False]


def test_what_validation_excludes_is_marked(tmp_path: Path) -> None:
    snapshot = written(
        tmp_path,
        brokers=[broker("a:8080"), broker("b:8080")],
        bundles=[bundle("t/bad", 0, 8), bundle("t/good", 0, 8), bundle("t/good", 8, 16)],
    )
    results = [
        documents.check(scope="broker", excluded=["b:8080"]),
        documents.check(scope="namespace", excluded=["t/bad"]),
        documents.check(scope="bundle", excluded=["t/good/0x00000008_0x00000010"]),
        documents.check(scope="cluster", excluded=[]),
    ]
    write_file(snapshot.folder("validation") / RESULT, documents.validation(*results).content())
    state = cluster_state(snapshot)
    assert state.brokers.complete.tolist() == [True, False]
    assert state.bundles.usable.tolist() == [False, True, False]


def test_what_the_leader_was_sent_stays_in_whatever_the_brokers_answered(tmp_path: Path) -> None:
    def both(row: Row) -> list[Row]:
        return [row, row | {"view": "published"}]

    silent = [broker("b:8080", reported=False), broker("b:8080", view="published")]
    snapshot = written(
        tmp_path,
        brokers=[*both(broker("a:8080")), *silent],
        bundles=[*both(bundle("t/bad", 0, 8)), *both(bundle("t/good", 0, 8))],
    )
    results = [
        documents.check(scope="broker", excluded=["b:8080"]),
        documents.check(scope="namespace", excluded=["t/bad"]),
        documents.check(scope="bundle", excluded=["t/good/0x00000000_0x00000008"]),
    ]
    write_file(snapshot.folder("validation") / RESULT, documents.validation(*results).content())
    published = cluster_state(snapshot, "published")
    assert published.brokers.complete.tolist() == [True, True]
    assert published.brokers.doubtful.tolist() == [False, True]
    assert published.bundles.usable.tolist() == [False, True]


@pytest.mark.parametrize("figure", [{"cpu_usage": float("nan")}, {"msg_rate_in_per_s": -1.0}])
def test_what_the_leader_was_sent_is_set_aside_if_nothing_can_be_computed_with_it(tmp_path: Path, figure: Row) -> None:
    brokers = [broker("a:8080"), broker("a:8080", view="published", **figure)]
    published = cluster_state(written(tmp_path, brokers=brokers), "published")
    assert published.brokers.complete.tolist() == [False]


def test_a_view_that_was_not_captured_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataNotFit, match="no load reports in ZooKeeper; use the fresh view"):
        cluster_state(written(tmp_path, brokers=[broker("a:8080")]), "published")


BY_ZOOKEEPER_ALONE = {"sources": {"admin_urls": [], "zookeeper": True}}


def test_by_zookeeper_alone_the_view_is_what_brokers_published(tmp_path: Path) -> None:
    snapshot = written(tmp_path, BY_ZOOKEEPER_ALONE, brokers=[broker("a:8080", view="published")])
    assert cluster_state(snapshot).view == "published"
    with pytest.raises(DataNotFit, match="from ZooKeeper alone and has the published view only"):
        cluster_state(snapshot, "fresh")


def test_tables_come_first(tmp_path: Path) -> None:
    snapshot = written(tmp_path, brokers=[broker("a:8080")])
    (snapshot.folder("tables/result") / RESULT).unlink()
    with pytest.raises(UsageError, match="run `normalize` first"):
        cluster_state(snapshot)


def test_a_whole_snapshot_misses_nothing(tmp_path: Path) -> None:
    assert cluster_state(written(tmp_path, brokers=[broker("a:8080")])).missing == {}


NOT_ASKED = [surface for surface in CLUSTER_SURFACES if surface != "isolation_policies"]


@pytest.mark.parametrize(
    ("manifest", "missing"),
    [
        (
            {"missing": [{"surface": "topic_names", "broker": None, "reason": "403"}]},
            {"topic_names": "topic_names: 403"},
        ),
        (
            {"failures": [{"surface": "partitioned_topics", "broker": None, "error": "cut short"}]},
            {"topic_names": "partitioned_topics: cut short"},
        ),
        (
            {"files": [documents.file(surface) for surface in NOT_ASKED]},
            {"isolation_policies": "isolation_policies: the capture did not read it"},
        ),
        ({"missing": [{"surface": "settings", "broker": "a:8080", "reason": "401"}]}, {}),
        (
            {
                "files": [documents.file(surface, rows=int(surface != "settings")) for surface in CLUSTER_SURFACES],
                "missing": [{"surface": "settings", "broker": "a:8080", "reason": "401"}],
            },
            {"settings": "settings: 401"},
        ),
        (
            {
                "files": [documents.file(surface) for surface in NOT_ASKED],
                "missing": [{"surface": "isolation_policies", "broker": None, "reason": "not available in 1.0"}],
            },
            {},
        ),
        (
            BY_ZOOKEEPER_ALONE
            | {
                "missing": [
                    {"surface": name, "broker": None, "reason": "not answered"} for name in ("settings", "topic_stats")
                ]
            },
            {"settings": "settings: not answered", "topic_traffic": "topic_stats: not answered"},
        ),
    ],
)
def test_what_was_not_captured_is_missing_with_the_reason(
    tmp_path: Path, manifest: Row, missing: dict[str, str]
) -> None:
    brokers = [broker("a:8080", view=view) for view in ("fresh", "published")]
    assert cluster_state(written(tmp_path, manifest, brokers=brokers)).missing == missing


def test_a_listing_of_topics_that_lacks_costs_its_namespace_alone(tmp_path: Path) -> None:
    gaps = [
        {"surface": surface, "broker": None, "namespace": namespace, "reason": "403"}
        for surface, namespace in (("topic_names", "t/a"), ("partitioned_topics", "t/b"), ("segments", "t/c"))
    ]
    state = cluster_state(written(tmp_path, {"missing": gaps}, brokers=[broker("a:8080")]))
    assert (state.missing, state.unlisted_namespaces) == ({}, {"t/a", "t/b", "t/c"})


def test_segments_are_topics_of_their_bundle_that_pulsars_lists_lack(tmp_path: Path) -> None:
    of_clicks = {"namespace": "t/n", "scalable_topic": "topic://t/n/clicks"}
    snapshot = written(
        tmp_path,
        brokers=[broker("a:8080")],
        bundles=[bundle("t/n", 0, 0xFFFFFFFF, "a:8080", topics=2)],
        topics=[
            topic("segment://t/n/clicks/0000-7fff-1", 0, **of_clicks, domain="segment", segment_state="ACTIVE"),
            topic("persistent://t/n/clicks", 0, **of_clicks, domain="persistent", segment_state="SEALED"),
            topic("persistent://t/n/views", 0, domain="persistent"),
        ],
    )
    topics = cluster_state(snapshot).topics
    assert topics.bundle.tolist() == [0, 0, 0]
    assert topics.is_listed.tolist() == [True, True, False]
    segments = topics.segments
    assert [str(topics.names[row]) for row in segments.row] == [
        "persistent://t/n/clicks",
        "segment://t/n/clicks/0000-7fff-1",
    ]
    assert (segments.names, segments.scalable_topic.tolist()) == (("topic://t/n/clicks",), [0, 0])
    assert segments.is_active.tolist() == [False, True]
    assert np.isnan(segments.controller_traffic).all()


def test_without_any_listing_of_topics_they_are_missing_with_the_reason(tmp_path: Path) -> None:
    files = [documents.file(surface) for surface in CLUSTER_SURFACES if surface != "topic_names"]
    gaps = [{"surface": "topic_names", "broker": None, "namespace": "t/a", "reason": "403"}]
    snapshot = written(tmp_path, {"files": files, "missing": gaps}, brokers=[broker("a:8080")])
    assert cluster_state(snapshot).missing == {"topic_names": "topic_names: 403"}


def test_where_no_broker_listed_its_topics_their_traffic_is_missing(tmp_path: Path) -> None:
    files = [documents.file(surface) for surface in CLUSTER_SURFACES if surface != "topic_stats"]
    gaps = [{"surface": "topic_stats", "broker": "a:8080", "reason": "403"}]
    snapshot = written(tmp_path, {"files": files, "missing": gaps}, brokers=[broker("a:8080")])
    assert cluster_state(snapshot).missing == {"topic_traffic": "topic_stats: 403"}


def test_settings_are_the_leaders_with_the_dynamic_values_beside_them(tmp_path: Path) -> None:
    rows = [
        {"origin": "runtime", "broker": "a:8080", "key": "statsUpdateFrequencyInSecs", "value": "60"},
        {"origin": "runtime", "broker": "b:8080", "key": "statsUpdateFrequencyInSecs", "value": "5"},
        {"origin": "dynamic", "broker": None, "key": "loadBalancerSheddingEnabled", "value": "false"},
    ]
    assert settings_inputs(written(tmp_path, settings=rows)) == (
        "4.0.8",
        {"statsUpdateFrequencyInSecs": "5"},
        {"loadBalancerSheddingEnabled": "false"},
    )


def test_another_brokers_settings_replace_a_silent_leaders(tmp_path: Path) -> None:
    rows = [{"origin": "runtime", "broker": "a:8080", "key": "statsUpdateFrequencyInSecs", "value": "60"}]
    assert settings_inputs(written(tmp_path, settings=rows))[1] == {"statsUpdateFrequencyInSecs": "60"}


HALF_UPGRADED = {"pulsar_version": "4.0.8", "pulsar_versions": {"a:8080": "4.0.8", "b:8080": "5.0.1"}}
BY_RELEASE = [
    {"origin": "runtime", "broker": "a:8080", "key": "maxUnloadPercentage", "value": "0.2"},
    {"origin": "runtime", "broker": "b:8080", "key": "maxUnloadPercentage", "value": "0.5"},
]


def test_while_brokers_are_upgraded_the_leader_decides_by_its_own_release(tmp_path: Path) -> None:
    snapshot = written(tmp_path, HALF_UPGRADED, settings=BY_RELEASE)
    assert settings_inputs(snapshot)[:2] == ("5.0.1", {"maxUnloadPercentage": "0.5"})


def test_what_an_upgrade_begins_with_is_the_configuration_of_the_oldest_release(tmp_path: Path) -> None:
    snapshot = written(tmp_path, HALF_UPGRADED, settings=BY_RELEASE)
    assert settings_inputs_of_oldest(snapshot)[:2] == ("4.0.8", {"maxUnloadPercentage": "0.2"})


def test_a_newer_brokers_configuration_does_not_count_for_the_oldest_release(tmp_path: Path) -> None:
    snapshot = written(tmp_path, HALF_UPGRADED, settings=BY_RELEASE[1:])
    assert settings_inputs_of_oldest(snapshot)[:2] == ("4.0.8", {})


@pytest.mark.parametrize("table", ["brokers", "topics", "settings"])
def test_a_table_that_is_gone_or_cut_short_is_named_with_what_to_do(tmp_path: Path, table: str) -> None:
    snapshot = written(tmp_path, brokers=[broker("a:8080")])
    file = Path(str(snapshot.folder(f"tables/{table}"))) / "part-0.parquet"
    says = rf"table {table} of snapshot {SNAPSHOT} is .* of another release \(.*\): remove .*/tables/\*/.* again"
    file.write_bytes(file.read_bytes()[:-8])
    for read in (read_table, readable_files):
        with pytest.raises(StorageError, match=says):
            read(snapshot, table)
    shutil.rmtree(file.parent)
    for read in (read_table, readable_files):
        with pytest.raises(StorageError, match=says):
            read(snapshot, table)


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_a_table_without_one_of_its_columns_is_damaged_not_zero(tmp_path: Path, table: str) -> None:
    snapshot = written(tmp_path)
    file = Path(str(snapshot.folder(f"tables/{table}"))) / "part-0.parquet"
    rows = pq.read_table(file)
    for column in set(rows.column_names) - ADDED_LATER:
        pq.write_table(rows.drop_columns(column), file)
        with pytest.raises(
            StorageError, match=rf"table {table} .* is .*damaged or of another release \(it has no column {column}\)"
        ):
            read_table(snapshot, table)


def test_what_tables_of_earlier_releases_lack_counts_as_zero(tmp_path: Path) -> None:
    snapshot = written(tmp_path, brokers=[broker("a:8080")], bundles=[bundle("t/n", 0, 8, averages_folded_samples=3)])
    file = Path(str(snapshot.folder("tables/bundles"))) / "part-0.parquet"
    pq.write_table(pq.read_table(file).drop_columns("averages_folded_samples"), file)
    assert cluster_state(snapshot).bundles.folded_samples.tolist() == [0]


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_a_column_of_another_type_is_damaged(tmp_path: Path, table: str) -> None:
    snapshot = written(tmp_path)
    file = Path(str(snapshot.folder(f"tables/{table}"))) / "part-0.parquet"
    rows = pq.read_table(file)
    for place, field in enumerate(rows.schema):
        pq.write_table(rows.set_column(place, field.name, pa.nulls(len(rows), pa.float32())), file)
        for read in (read_table, readable_files):
            with pytest.raises(StorageError, match=rf"{file}: its column {field.name} is float, not "):
                read(snapshot, table)
