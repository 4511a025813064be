"""Raw lines as Spark reads them: by surface, each line once, and what can't be used kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard
from pyspark.sql import SparkSession
from upath import UPath

from pulsar_advisor.tables.configuration import policies
from pulsar_advisor.tables.raw import RawTables, read_raw

pytestmark = pytest.mark.spark


def raw_tables(spark: SparkSession, folder: Path, **surfaces: bytes) -> RawTables:
    """The lines of these surfaces, in files as a capture writes them."""
    snapshot = folder / "snapshot=20261121T083000Z"
    snapshot.mkdir()
    files = []
    for surface, lines in surfaces.items():
        path = f"{surface}.jsonl.zst"
        (snapshot / path).write_bytes(zstandard.compress(lines))
        files.append({"path": path, "surface": surface, "rows": lines.count(b"\n")})
    return read_raw(spark, UPath(snapshot), files)


def test_each_line_is_of_the_surface_that_its_file_is_named_for(spark: SparkSession, tmp_path: Path) -> None:
    raw = raw_tables(spark, tmp_path, tenants=b'{"tenant":"retail"}\n', brokers=b'{"broker":"b:1"}\n{"broker":"c:1"}\n')
    assert [row["tenant"] for row in raw["tenants"].collect()] == ["retail"]
    assert [row["broker"] for row in raw["brokers"].collect()] == ["b:1", "c:1"]
    assert raw.counts == {"tenants.jsonl.zst": (1, 0), "brokers.jsonl.zst": (2, 0)}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"broker":', '{"broker":'),
        (b'{"broker":"b:1","available":"perhaps"}', '{"broker":"b:1","available":"perhaps"}'),
        (b'{"version":"4.0.8"}', "{}"),
        (b'{"broker":"b\xff:1"}', None),
    ],
    ids=["cut short", "another type", "a required field lacks", "not UTF-8"],
)
def test_a_line_that_cannot_be_used_is_kept_apart(
    spark: SparkSession, tmp_path: Path, line: bytes, said: str | None
) -> None:
    raw = raw_tables(spark, tmp_path, brokers=b'{"broker":"a:1"}\n' + line + b"\n")
    assert [row["broker"] for row in raw["brokers"].collect()] == ["a:1"]
    (unreadable,) = raw.unreadable().collect()
    assert (unreadable["surface"], unreadable["path"]) == ("brokers", "brokers.jsonl.zst")
    assert said is None or unreadable["text"] == said
    assert raw.counts == {"brokers.jsonl.zst": (2, 1)}


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
