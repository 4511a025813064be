"""Raw lines as Spark reads them: by surface, each line once, and what can't be used kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from upath import UPath

import documents
from pulsar_advisor.tables.configuration import policies
from pulsar_advisor.tables.raw import SURFACES, RawTables, read_raw

pytestmark = pytest.mark.spark


def raw_tables(spark: SparkSession, folder: Path, **surfaces: bytes) -> RawTables:
    """The lines of these surfaces, in files as a capture writes them."""
    snapshot = folder / "snapshot=20261121T083000Z"
    snapshot.mkdir()
    files = []
    for surface, lines in surfaces.items():
        path = f"{surface}.jsonl.zst"
        (snapshot / path).write_bytes(zstandard.compress(lines))
        described = documents.file(surface, rows=lines.count(b"\n"))
        files.append(described.model_copy(update={"path": path}))
    return read_raw(spark, UPath(snapshot), files)


def test_each_line_is_of_the_surface_that_its_file_is_named_for(spark: SparkSession, tmp_path: Path) -> None:
    raw = raw_tables(spark, tmp_path, tenants=b'{"tenant":"retail"}\n', brokers=b'{"broker":"b:1"}\n{"broker":"c:1"}\n')
    assert [row["tenant"] for row in raw["tenants"].collect()] == ["retail"]
    assert [row["broker"] for row in raw["brokers"].collect()] == ["b:1", "c:1"]
    assert raw.counts == {"tenants.jsonl.zst": (1, 0), "brokers.jsonl.zst": (2, 0)}


STATS = (
    b'{"broker":"b:1","namespace":"t/n","range":"0x00000000_0x80000000","domain":"persistent","topic":"%s","stats":%s}'
)
KEPT = [
    (b'{"broker":', '{"broker":'),
    (b'{"broker":"b:1","available":"perhaps"}', '{"broker":"b:1","available":"perhaps"}'),
    (b'{"version":"4.0.8"}', "{}"),
    (b'{"broker":"b\xff:1"}', None),
    (b"null", "null"),
    (b"", ""),
]
PASSING = [
    (STATS[:40], STATS[:40].decode()),
    (STATS % (b"b", b'{"producerCount":"many"}'), (STATS % (b"b", b'{"producerCount":"many"}')).decode()),
    (b'{"topic":"b"}', '{"topic":"b"}'),
    (STATS % (b"b\xff", b"{}"), None),
    (b"null", "null"),
]
"""Unusable lines of a surface that is kept, and of one that isn't, and what is said of them."""
WRONG = ["cut short", "another type", "a required field lacks", "not UTF-8", "null", "empty"]


@pytest.mark.parametrize(("line", "said"), KEPT, ids=WRONG)
def test_a_line_that_cannot_be_used_is_kept_apart(
    spark: SparkSession, tmp_path: Path, line: bytes, said: str | None
) -> None:
    raw = raw_tables(spark, tmp_path, brokers=b'{"broker":"a:1"}\n' + line + b"\n")
    assert [row["broker"] for row in raw["brokers"].collect()] == ["a:1"]
    (unreadable,) = raw.unreadable().where("is_valid_utf8(text)").collect()
    assert (unreadable["surface"], unreadable["path"]) == ("brokers", "brokers.jsonl.zst")
    assert said is None or unreadable["text"] == said
    assert raw.counts == {"brokers.jsonl.zst": (2, 1)}


def test_a_topic_has_no_more_partitions_than_could_be_rows(spark: SparkSession, tmp_path: Path) -> None:
    line = b'{"namespace":"t/n","domain":"persistent","topic":"%s","partitions":%d}'
    lines = b"".join(line % one + b"\n" for one in ((b"a", 100_000), (b"b", 2**31 - 1)))
    raw = raw_tables(spark, tmp_path, partitioned_topics=lines)
    assert [row["topic"] for row in raw["partitioned_topics"].collect()] == ["a"]
    assert [row["text"] for row in raw.unreadable().collect()] == [(line % (b"b", 2**31 - 1)).decode()]


@pytest.mark.parametrize(("line", "said"), PASSING, ids=WRONG[: len(PASSING)])
def test_a_topic_that_cannot_be_used_is_kept_apart_once_its_surface_was_read(
    spark: SparkSession, tmp_path: Path, line: bytes, said: str | None
) -> None:
    lines = STATS % (b"a", b"{}") + b"\n" + line + b"\n"
    raw = raw_tables(spark, tmp_path, brokers=b'{"broker":"b:1"}\n', topic_stats=lines)
    assert [row["topic"] for row in raw["topic_stats"].collect()] == ["a"]
    (unreadable,) = raw.unreadable().where("is_valid_utf8(text)").collect()
    assert (unreadable["surface"], unreadable["path"]) == ("topic_stats", "topic_stats.jsonl.zst")
    assert said is None or unreadable["text"] == said
    assert raw.counts == {"brokers.jsonl.zst": (1, 0), "topic_stats.jsonl.zst": (2, 1)}


@pytest.mark.parametrize("surface", ["topic_stats", "topic_names"])
def test_the_surfaces_that_are_not_kept_require_all_their_columns(spark: SparkSession, surface: str) -> None:
    declared = SURFACES[surface]
    assert set(declared.required) == set(StructType.fromDDL(declared.schema).names)


def test_topics_of_which_the_manifest_knows_no_line_are_read_all_the_same(spark: SparkSession, tmp_path: Path) -> None:
    raw = raw_tables(spark, tmp_path, topic_stats=STATS % (b"a", b"{}"))  # no newline, so of no lines
    assert raw["topic_stats"].count() == 1
    assert raw.counts == {"topic_stats.jsonl.zst": (1, 0)}


def test_a_surface_that_is_not_kept_can_be_read_twice_and_is_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    name = b'{"namespace":"t/n","domain":"persistent","topic":"a"}\n'
    raw = raw_tables(spark, tmp_path, topic_names=name * 3)
    assert [raw["topic_names"].count() for _ in range(2)] == [3, 3]
    assert raw.counts == {"topic_names.jsonl.zst": (3, 0)}
    assert raw.unreadable().isEmpty()


def test_lines_are_counted_by_path_if_spark_lost_what_the_query_counted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsar_advisor.tables.raw._PATIENCE_S", 0.1)
    raw = raw_tables(spark, tmp_path, topic_stats=STATS % (b"a", b"{}") + b"\n{}\n")  # and no query reads them
    assert raw.counts == {"topic_stats.jsonl.zst": (2, 1)}
    assert [row["text"] for row in raw.unreadable().collect()] == ["{}"]


def test_an_empty_line_among_topics_is_no_line_so_that_the_manifest_disagrees(
    spark: SparkSession, tmp_path: Path
) -> None:
    raw = raw_tables(spark, tmp_path, topic_stats=STATS % (b"a", b"{}") + b"\n\n")
    raw["topic_stats"].collect()
    assert raw.counts == {"topic_stats.jsonl.zst": (1, 0)}  # of two lines by the manifest


def test_a_surface_without_a_readable_line_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    raw = raw_tables(spark, tmp_path, brokers=b"nothing\n")
    assert not raw.has_lines("brokers")
    assert raw["brokers"].columns[0] == "broker"
    assert raw["brokers"].isEmpty()
    assert raw["topic_stats"].isEmpty()


def test_policies_keep_the_order_in_which_pulsar_gave_them(spark: SparkSession, tmp_path: Path) -> None:
    lines = b"".join(b'{"name":"%s","document":{}}\n' % name for name in (b"z", b"a", b"m"))
    raw = raw_tables(spark, tmp_path, brokers=b'{"broker":"a:1"}\n', isolation_policies=lines)
    rows = policies(raw).collect()
    assert [(row["position"], row["name"]) for row in rows] == [(0, "z"), (1, "a"), (2, "m")]
