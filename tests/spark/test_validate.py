"""The suites on real tables: a clean cluster raises nothing, a damaged one exactly what is wrong with it."""

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from pulsar_advisor.documents.document import as_json
from pulsar_advisor.documents.validation import CheckResult, Validation
from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.quality import validate as validate_module
from pulsar_advisor.quality.checks import checks, suites
from pulsar_advisor.quality.facts.facts import facts
from pulsar_advisor.stages import validate as stage
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import RESULT, Root, Snapshot
from pulsar_advisor.tables.earlier import comparable_before
from pulsar_advisor.tables.settings_inputs import settings_inputs
from pulsar_advisor.tables.snapshot_frames import SnapshotFrames
from pulsar_advisor.tables.state import cluster_state
from snapshots import RawSnapshot, skewed_modular_cluster
from spark.mutations import EXTENSIBLE, clean_capture

pytestmark = pytest.mark.spark

RECORDED = Path(__file__).parents[1] / "data" / "recorded"

FIRST, SECOND, THIRD = (f"broker-{number}.pulsar.test:8080" for number in (1, 2, 3))
BOMB = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), pa.array(["x" * 10**6]))
Result = Validation


def judged(spark: SparkSession, folder: Path, raw: RawSnapshot) -> tuple[Snapshot, Result]:
    snapshot = raw.write(Root(str(folder), "test"))
    normalize(spark, snapshot)
    return snapshot, validate(spark, snapshot)


def failing(result: Result) -> dict[str, CheckResult]:
    return {one.check: one for one in result.results if not one.success}


@pytest.mark.full
def test_a_clean_cluster_raises_nothing(spark: SparkSession, tmp_path: Path) -> None:
    _, result = judged(spark, tmp_path, skewed_modular_cluster())
    assert failing(result) == {}
    assert result.success
    assert [one.check for one in result.results] == [check.name for check in checks()]


@pytest.mark.full
def test_a_capture_of_real_brokers_raises_nothing(spark: SparkSession, tmp_path: Path) -> None:
    snapshot = Root(str(tmp_path), "sample").snapshot("20261121T110437Z")
    with tarfile.open(RECORDED / "modular-4.0.8.tar") as archive:
        archive.extractall(Path(str(snapshot.folder("raw"))), filter="data")
    normalize(spark, snapshot)
    assert failing(validate(spark, snapshot)) == {}


MOVED = "shop/orders/0x00000000_0x20000000"
CLAIMED_TWICE = "shop/orders/0x20000000_0x40000000"
OWNED_BY_THE_DEAD = "shop/orders/0x40000000_0x60000000"
NEGATIVE = "shop/orders/0x60000000_0x80000000"
BEHIND_THE_CUT = "shop/payments/0x80000000_0xc0000000"
"""Bundle of the topic in the truncated line."""


@pytest.fixture(scope="module")
def damaged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, Result]:
    """Every corruption in a place of its own, so that each finding has one cause."""
    raw = skewed_modular_cluster()
    lines = raw.lines
    for line in lines["owned_bundles"]:
        in_the_end = line["pass"] == "end"
        if line["bundle"] == OWNED_BY_THE_DEAD and in_the_end:
            line["broker"] = "broker-9.pulsar.test:8080"
        if line["bundle"] == MOVED and in_the_end:
            line["broker"] = SECOND
    raw.head["moved_bundles"] = [MOVED]
    claim = next(
        line for line in lines["owned_bundles"] if line["bundle"] == CLAIMED_TWICE and line["source"] == "rest"
    )
    lines["owned_bundles"].append({**claim, "pass": "end", "broker": SECOND})
    raw.broker_report(FIRST)["lastStats"][NEGATIVE]["msgRateIn"] = -5.0
    raw.broker_report(SECOND)["lastUpdate"] -= 40 * 60_000
    raw.broker_report(THIRD)["cpu"]["usage"] = "NaN"
    for surface in ("namespaces", "local_policies"):
        for line in lines[surface]:
            if line["namespace"] == "public/default":
                line["document"]["bundles"]["boundaries"].pop()
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines["topic_stats/2"])
    raw.raw_text["topic_stats/2"] = text[:-40]
    lines["settings"][1]["values"] = {**lines["settings"][1]["values"], "loadBalancerSheddingEnabled": "false"}
    raw.head["missing"] = [{"surface": "failure_domains", "broker": None, "reason": "401 from the admin API"}]
    return judged(spark, tmp_path_factory.mktemp("damaged"), raw)


def test_each_corruption_is_found_by_its_check_and_nothing_else_fails(damaged: tuple[Snapshot, Result]) -> None:
    _, result = damaged
    found = {name: (one.effect, [*one.excluded, *(one.concerned or ())]) for name, one in failing(result).items()}
    assert found == {
        "brokers.report_age": ("doubt", [SECOND]),
        "brokers.cpu_usage": ("confine", [THIRD]),
        "brokers.cpu_percent": ("doubt", [THIRD]),
        "bundles.ring_to_above": ("confine", ["public/default"]),
        "bundles.owner_is_active": ("confine", [OWNED_BY_THE_DEAD]),
        "bundles.one_owner": ("doubt", [CLAIMED_TWICE]),
        "bundles.stayed": ("doubt", [MOVED]),
        "bundles.figures_are_the_owners": ("doubt", [MOVED, OWNED_BY_THE_DEAD]),
        "bundles.topics_add_up": ("doubt", [NEGATIVE, BEHIND_THE_CUT]),
        "bundles.msg_rate_in": ("confine", [NEGATIVE]),
        "namespaces.boundaries_counted": ("doubt", ["public/default"]),
        "problems.optional_surfaces": ("doubt", []),
        "problems.brokers_lines": ("doubt", [THIRD]),
        "settings.brokers_agree": ("doubt", []),
    }


def test_findings_that_can_be_confined_do_not_stop_the_line(damaged: tuple[Snapshot, Result]) -> None:
    snapshot, result = damaged
    assert result.success
    state = cluster_state(snapshot)
    assert state.brokers.complete.tolist() == [True, True, False]
    assert state.brokers.doubtful.tolist() == [False, True, True]
    unusable = {state.bundle_name(row) for row in range(len(state.bundles)) if not state.bundles.usable[row]}
    assert {OWNED_BY_THE_DEAD, NEGATIVE} < unusable
    assert not {MOVED, CLAIMED_TWICE} & unusable


def test_examples_name_the_row_and_the_value(damaged: tuple[Snapshot, Result]) -> None:
    found = failing(damaged[1])
    assert found["bundles.msg_rate_in"].failed_rows == 1
    assert found["bundles.msg_rate_in"].examples == (
        {"namespace": "shop/orders", "bundle": NEGATIVE, "msg_rate_in_per_s": -5.0},
    )
    assert found["settings.brokers_agree"].examples == (
        {"key": "loadBalancerSheddingEnabled", "values": 2, "one": "false", "another": "true"},
    )


def test_the_result_is_json_with_finite_numbers_only(damaged: tuple[Snapshot, Result]) -> None:
    snapshot, result = damaged
    written = json.loads((snapshot.folder("validation") / RESULT).read_text())
    assert written == json.loads(json.dumps(as_json(result), allow_nan=False))


@pytest.mark.full
def test_whole_numbers_at_the_ends_of_64_bits_are_judged(spark: SparkSession, tmp_path: Path) -> None:
    raw = skewed_modular_cluster()
    least, greatest = -(2**63), 2**63 - 1
    raw.broker_report(FIRST)["lastUpdate"] = least
    raw.broker_report(SECOND)["startTimestamp"] = least
    for stats in raw.broker_report(THIRD)["lastStats"].values():
        stats["topics"] = stats["producerCount"] = greatest
    for line in (*raw.lines["namespaces"], *raw.lines["local_policies"]):
        line["document"]["bundles"]["numBundles"] = least
    for line in raw.lines["load_reports"]:
        if line["source"] == "zookeeper":
            line["modifiedAt"], line["version"] = least, greatest
    _, result = judged(spark, tmp_path, raw)
    failed = failing(result)
    assert {check: one.concerned for check, one in failed.items() if check.startswith("brokers.")} == {
        "brokers.report_age": (FIRST,),
        "brokers.counts_add_up": (THIRD,),
    }
    assert {"bundles.counts", "namespaces.boundaries_counted"} < failed.keys()
    assert [one.error for one in failed.values() if one.error] == []


@pytest.mark.full
def test_counts_of_topics_whose_sum_exceeds_64_bits_are_judged(spark: SparkSession, tmp_path: Path) -> None:
    raw = clean_capture(EXTENSIBLE).raw
    for name, lines in raw.lines.items():
        for line in lines if name.startswith("topic_stats/") else ():
            line["stats"]["producerCount"] = 2**63 - 1
    _, result = judged(spark, tmp_path, raw)
    assert failing(result).keys() == {"bundles.counts", "topics.counts"}


@pytest.mark.full
def test_totals_without_any_bundle_do_not_add_up(spark: SparkSession, tmp_path: Path) -> None:
    raw = skewed_modular_cluster()
    raw.broker_report(FIRST)["lastStats"] = None
    _, result = judged(spark, tmp_path, raw)
    rates = ("msg_rate_in", "msg_rate_out", "msg_throughput_in", "msg_throughput_out")
    totals = {check: one.concerned for check, one in failing(result).items() if check.startswith("brokers.")}
    assert totals == dict.fromkeys(("brokers.counts_add_up", *(f"brokers.{rate}_adds_up" for rate in rates)), (FIRST,))


@pytest.mark.slow
def test_brokers_in_migration_stop_the_line(spark: SparkSession, tmp_path: Path) -> None:
    raw = skewed_modular_cluster()
    extensible = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
    raw.broker_report(FIRST)["loadManagerClassName"] = extensible
    _, result = judged(spark, tmp_path, raw)
    assert set(failing(result)) == {"brokers.load_manager_agrees", "settings.load_manager_agrees"}
    assert not result.success


@pytest.mark.slow
def test_in_a_large_snapshot_small_tables_have_another_session_and_the_same_results(
    spark: SparkSession, damaged: tuple[Snapshot, Result]
) -> None:
    snapshot, result = damaged
    large = spark.newSession()
    for key, value in (
        ("shuffle.partitions", "8"),
        ("codegen.wholeStage", "true"),
        ("codegen.factoryMode", "FALLBACK"),
    ):
        large.conf.set(f"spark.sql.{key}", value)
    made = facts_of(large, snapshot)
    assert made["topics"]().sparkSession is large
    assert made["brokers"]().sparkSession not in (large, spark)
    assert validated_again(large, snapshot) == result


def test_a_check_that_cannot_be_evaluated_is_critical_and_says_why(
    spark: SparkSession, damaged: tuple[Snapshot, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, _ = damaged

    def without_a_fact(*given: Any) -> dict[str, Callable[[], DataFrame]]:
        made = facts(*given)
        return {**made, "namespaces": lambda: made["namespaces"]().drop("undeclared_ranges")}

    monkeypatch.setattr(validate_module, "facts", without_a_fact)
    only = {"namespaces": suites()["namespaces"]}
    monkeypatch.setattr(validate_module, "suites", lambda: only)
    monkeypatch.setattr(validate_module, "_LONGEST", ())
    result = validated_again(spark, snapshot)
    (unknown,) = (one for one in result.results if one.error)
    assert (unknown.check, unknown.severity, unknown.success) == (
        "namespaces.boundaries_counted",
        "critical",
        False,
    )
    assert "undeclared_ranges" in str(unknown.error)
    assert not result.success


@pytest.mark.parametrize(
    ("table", "column", "values", "why"),
    [
        ("topics", "hash", ["12"], "its column hash is string, not int64"),
        ("topics", "topic", BOMB, "its 10,000 rows would take more than 4,294,967,296 bytes"),
        pytest.param("documents", "bytes", [1.5], "its column bytes is double, not int64", marks=pytest.mark.full),
    ],
)
def test_foreign_parquet_is_refused_before_spark_reads_it(
    spark: SparkSession,
    damaged: tuple[Snapshot, Result],
    tmp_path: Path,
    table: str,
    column: str,
    values: pa.Array | list[object],
    why: str,
) -> None:
    snapshot, _ = damaged
    copied = Root(str(shutil.copytree(snapshot.root.url, tmp_path / "copied")), "test").snapshot(snapshot.id)
    folder = Path(str(copied.folder(f"tables/{table}")))
    pq.write_table(pa.table({column: values}), folder / "part-99999.parquet")
    for file in folder.glob("part-0*.parquet"):
        file.unlink()
    shutil.rmtree(copied.folder("validation"))
    with pytest.raises(StorageError, match=rf"table {table} .* release \({folder}/part-99999\.parquet.*{why}"):
        validate(spark, copied)
    assert not (copied.folder("validation") / RESULT).exists()


@pytest.mark.full
def test_a_table_that_lacks_a_column_fails_its_own_checks_and_no_others(
    spark: SparkSession, damaged: tuple[Snapshot, Result], tmp_path: Path
) -> None:
    snapshot, before = damaged
    copied = Root(str(shutil.copytree(snapshot.root.url, tmp_path / "copied")), "test").snapshot(snapshot.id)
    for file in Path(str(copied.folder("tables/namespaces"))).glob("*.parquet"):
        rows = pq.read_table(file).drop_columns("deleted")
        pq.write_table(rows.replace_schema_metadata(None), file)  # Spark would believe the columns it noted there
    result = validated_again(spark, copied)
    unknown = {one.check for one in result.results if one.error}
    assert unknown == {check.name for check in checks() if check.table == "namespaces"}
    assert all("deleted" in one.error for one in result.results if one.error)
    assert set(failing(result)) - set(failing(before)) == unknown - set(failing(before)) | {"capture.columns"}
    assert not result.success


def test_a_table_that_is_gone_or_cut_short_is_named(
    spark: SparkSession, damaged: tuple[Snapshot, Result], tmp_path: Path
) -> None:
    snapshot, _ = damaged
    copied = Root(str(shutil.copytree(snapshot.root.url, tmp_path / "copied")), "test").snapshot(snapshot.id)
    shutil.rmtree(str(copied.folder("tables/brokers")))
    with pytest.raises(
        StorageError, match=r"table brokers .* is .* of another release .*: remove .* and normalize again"
    ):
        validated_again(spark, copied)


@pytest.mark.parametrize(
    ("table", "column"), [("bundles", "owner"), pytest.param("topics", "hash", marks=pytest.mark.full)]
)
def test_rows_that_can_not_be_read_are_named_by_their_table(
    spark: SparkSession, damaged: tuple[Snapshot, Result], tmp_path: Path, table: str, column: str
) -> None:
    snapshot, _ = damaged
    copied = Root(str(shutil.copytree(snapshot.root.url, tmp_path / "copied")), "test").snapshot(snapshot.id)
    for file in Path(str(copied.folder(f"tables/{table}"))).glob("*.parquet"):
        content = bytearray(file.read_bytes())
        chunks = pq.read_metadata(file).row_group(0)
        (chunk,) = (one for n in range(chunks.num_columns) if (one := chunks.column(n)).path_in_schema == column)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        content[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
        file.write_bytes(content)
    with pytest.raises(StorageError, match=rf"table {table} .* is missing, damaged or of another release"):
        validated_again(spark, copied)


def test_an_earlier_snapshot_whose_tables_are_gone_is_none(
    spark: SparkSession, damaged: tuple[Snapshot, Result], tmp_path: Path
) -> None:
    snapshot, _ = damaged
    copied = Root(str(shutil.copytree(snapshot.root.url, tmp_path / "copied")), "test")
    newer, earlier = copied.snapshot(snapshot.id), copied.snapshot("20200101T000000Z")
    for folder in ("raw", "tables/result"):
        shutil.copytree(str(newer.folder(folder)), str(earlier.folder(folder)))
    rows = facts_of(spark, newer)["brokers"]()
    assert {row["figures_moved"] for row in rows.collect()} == {None}


def facts_of(spark: SparkSession, snapshot: Snapshot) -> dict[str, Callable[[], DataFrame]]:
    """What the suites judge of a snapshot, compared with the one before it."""
    tables, before = SnapshotFrames.of(spark, snapshot), next(comparable_before(snapshot), None)
    earlier = None if before is None else tables.at(before)
    return facts(tables, earlier, read_manifest(snapshot), settings_inputs(snapshot))


def validated_again(spark: SparkSession, snapshot: Snapshot) -> Result:
    """Judge a snapshot that was judged before, and leave its result as it was."""
    kept = snapshot.folder("validation") / RESULT
    before = kept.read_bytes()
    kept.unlink()
    try:
        return validate(spark, snapshot)
    finally:
        kept.write_bytes(before)


def test_a_second_run_leaves_the_result_as_it_is(spark: SparkSession, damaged: tuple[Snapshot, Result]) -> None:
    snapshot, result = damaged
    assert validate(spark, snapshot) == result


def test_a_result_of_other_suites_is_not_replaced(
    spark: SparkSession, damaged: tuple[Snapshot, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, _ = damaged
    monkeypatch.setattr(stage, "suites_sha256", lambda: "0" * 64)
    with pytest.raises(StorageError, match="with other checks"):
        validate(spark, snapshot)


def test_tables_come_first(spark: SparkSession, tmp_path: Path) -> None:
    snapshot = skewed_modular_cluster().write(Root(str(tmp_path), "test"))
    with pytest.raises(UsageError, match="run `normalize` first"):
        validate(spark, snapshot)
