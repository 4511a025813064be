"""The leader's averages: its stored nodes, brought up to the load reports that brokers have written since."""

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor.tables.averages import average, sample, with_samples
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.state import cluster_state
from snapshots import RATES, RawSnapshot, skewed_modular_cluster

pytestmark = pytest.mark.spark

FIRST = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
HOT, WARM, COLD = (f"broker-{number}.pulsar.test:8080" for number in (1, 2, 3))
BUSY = "shop/orders/0x20000000_0x40000000"
"""A bundle of the first broker."""
SECOND_MS = 1000


def cluster(started_at: datetime = FIRST, *, stored_ago_s: int = 300, **written_ago_s: int) -> RawSnapshot:
    """The skewed cluster: its leader stored averages of 10 samples, its brokers wrote reports, so long ago."""
    raw = skewed_modular_cluster(started_at=started_at)
    now_ms = raw.head["started_at_ms"]
    for line in raw.lines["bundle_data"]:
        line["modifiedAt"] = now_ms - stored_ago_s * SECOND_MS
    ago = dict(zip((HOT, WARM, COLD), (written_ago_s[name] for name in ("hot", "warm", "cold")), strict=True))
    for line in raw.lines["load_reports"]:
        if line["source"] == "zookeeper":
            line["modifiedAt"] = now_ms - ago[line["broker"]] * SECOND_MS
            line["version"] = 7
    return raw


def tables(spark: SparkSession, folder: Path, *snapshots: RawSnapshot) -> dict[str, Any]:
    """The busy bundle's row of the last snapshot."""
    root = Root(str(folder), "test")
    for raw in snapshots:
        snapshot = raw.write(root)
        normalize(spark, snapshot)
    return row_of(snapshot)


def row_of(snapshot: Snapshot, bundle: str = BUSY) -> dict[str, Any]:
    rows = read_table(snapshot, "bundles", "published")
    (row,) = rows.filter(pc.field("bundle") == bundle).to_pylist()
    found: dict[str, Any] = row
    return found


def stored(raw: RawSnapshot, term: str, bundle: str = BUSY) -> float:
    node = next(line["document"] for line in raw.lines["bundle_data"] if line["bundle"] == bundle)
    return float(node[term]["msgRateIn"])


def reported(raw: RawSnapshot, bundle: str = BUSY) -> float:
    return float(raw.broker_report(HOT, "zookeeper")["lastStats"][bundle]["msgRateIn"])


def after(figure: float, maximum: int, *samples: float) -> float:
    """What Pulsar's `TimeAverageMessageData` holds after more samples, once it is full."""
    for new in samples:
        figure = ((maximum - 1) * figure + new) / maximum
    return figure


@pytest.mark.parametrize(
    ("before", "number", "samples", "expected"),
    [
        (4.0, 8, [(9.0, 2)], (5.0, 10)),
        (4.0, 10, [(14.0, 1), (5.0, 1)], (5.0, 10)),
        (4.0, 9, [(14.0, 1), (5.0, 1)], (5.0, 10)),
        (None, 0, [(7.0, 3)], (7.0, 3)),
        (4.0, 3, [(None, 0)], (4.0, 3)),
        (4.0, 3, [(None, 1)], (None, 4)),
        (4.0, 20, [(8.0, 1)], (4.4, 20)),
        (4.0, 0, [], (4.0, 0)),
    ],
    ids=[
        "a mean until it is full",
        "then a tenth each",
        "one after the other",
        "nothing before",
        "no times, so no figure either",
        "no figure",
        "more than full",
        "no samples",
    ],
)
def test_samples_are_added(
    spark: SparkSession,
    before: float | None,
    number: int,
    samples: list[tuple[float | None, int]],
    expected: tuple[float | None, int],
) -> None:
    def figures(figure: float | None) -> Column:
        return sf.array(sf.lit(figure).cast("double"))

    added = sf.array(*(sample(figures(figure), sf.lit(times)) for figure, times in samples))
    typed = added.cast("array<struct<figures: array<double>, times: bigint>>")
    row = (
        spark.range(1).select(with_samples(average(figures(before), sf.lit(number)), typed, 10).alias("found")).first()
    )
    assert row is not None
    assert row.found.samples == expected[1]
    assert row.found.figures == [pytest.approx(expected[0])]


@pytest.mark.full
def test_every_report_since_the_node_adds_a_sample(spark: SparkSession, tmp_path: Path) -> None:
    raw = cluster(hot=200, warm=100, cold=50)
    row, figure = tables(spark, tmp_path, raw), reported(raw)
    assert (row["averages_origin"], row["averages_folded_samples"]) == ("bundle_data", 3)
    assert row["averages_unknown_samples"] == 0
    for term, column, maximum in (("shortTermData", "short_term", 10), ("longTermData", "long_term", 1000)):
        expected = after(stored(raw, term), maximum, figure, figure, figure)
        assert row[f"{column}_msg_rate_in_per_s"] == pytest.approx(expected, rel=1e-12)
        assert row[f"{column}_samples"] == maximum


@pytest.mark.full
def test_a_report_older_than_the_node_is_in_it_already(spark: SparkSession, tmp_path: Path) -> None:
    raw = cluster(hot=400, warm=350, cold=310)
    row = tables(spark, tmp_path, raw)
    assert row["averages_folded_samples"] == 0
    assert row["short_term_msg_rate_in_per_s"] == stored(raw, "shortTermData")


@dataclass(frozen=True)
class Replaced:
    """A snapshot whose busy broker wrote its newest report after those of the others."""

    raw: RawSnapshot
    snapshot: Snapshot

    def row(self, bundle: str = BUSY) -> dict[str, Any]:
        return row_of(self.snapshot, bundle)


IMPOSSIBLE = {"shop/orders/0x00000000_0x20000000": (-10, 0), "shop/orders/0x40000000_0x60000000": (2**63 - 1, 10)}
"""Two more bundles of the first broker: the number of samples that the leader stored of each, and the nearest."""


@pytest.fixture(scope="module")
def replaced(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Replaced:
    raw = cluster(hot=50, warm=200, cold=100)
    for line in raw.lines["bundle_data"]:
        if line["bundle"] in IMPOSSIBLE:
            line["document"]["shortTermData"]["numSamples"] = IMPOSSIBLE[line["bundle"]][0]
    snapshot = raw.write(Root(str(tmp_path_factory.mktemp("replaced")), "test"))
    normalize(spark, snapshot)
    return Replaced(raw, snapshot)


@pytest.mark.slow
def test_figures_that_a_later_report_replaced_are_taken_to_be_its_own(replaced: Replaced) -> None:
    row, raw = replaced.row(), replaced.raw
    assert (row["averages_folded_samples"], row["averages_unknown_samples"]) == (1, 2)
    expected = after(stored(raw, "shortTermData"), 10, *(3 * [reported(raw)]))
    assert row["short_term_msg_rate_in_per_s"] == pytest.approx(expected, rel=1e-12)


@pytest.fixture(scope="module")
def earlier(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root whose snapshot is of before two brokers wrote reports, and of other figures of the busy bundle."""
    before = cluster(FIRST - timedelta(seconds=240), stored_ago_s=60, hot=100, warm=100, cold=100)
    for report in (line["document"] for line in before.lines["load_reports"]):
        if BUSY in report["lastStats"]:
            report["lastStats"][BUSY].update(dict.fromkeys(RATES, 8000.0))
    folder = tmp_path_factory.mktemp("earlier")
    tables(spark, folder, before)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("of_an_earlier_release", [False, True], ids=["of this release", "of an earlier release"])
def test_an_earlier_snapshot_knows_the_figures_that_were_replaced(
    spark: SparkSession, tmp_path: Path, earlier: Path, of_an_earlier_release: bool
) -> None:
    """An earlier release's averages, which no report was added to, are not gone on from."""
    folder = tmp_path / "root"
    shutil.copytree(earlier, folder)
    if of_an_earlier_release:
        _without_added_reports(folder)
    raw = cluster(hot=50, warm=200, cold=100)
    for line in raw.lines["load_reports"]:
        if line["source"] == "zookeeper":
            line["version"] += 1
    row = tables(spark, folder, raw)
    assert (row["averages_folded_samples"], row["averages_unknown_samples"]) == (3, 0)
    expected = after(stored(raw, "shortTermData"), 10, 8000.0, 8000.0, reported(raw))
    assert row["short_term_msg_rate_in_per_s"] == pytest.approx(expected, rel=1e-12)


def _without_added_reports(folder: Path) -> None:
    """Make the bundles' averages an earlier release's, and far from what this one finds."""
    [file] = (folder / "tables" / "bundles" / "cluster=test").glob("*/*.parquet")
    rows = pq.ParquetFile(file).read().drop_columns(["averages_folded_samples", "averages_unknown_samples"])
    place, never = rows.column_names.index("short_term_msg_rate_in_per_s"), pa.array([1e6] * len(rows))
    pq.write_table(rows.set_column(place, "short_term_msg_rate_in_per_s", never), file)


@pytest.mark.full
def test_the_same_node_goes_on_and_the_version_counts_the_reports_between(spark: SparkSession, tmp_path: Path) -> None:
    before = cluster(FIRST - timedelta(seconds=200), stored_ago_s=100, hot=40, warm=30, cold=20)
    raw = cluster(hot=120, warm=100, cold=50)
    for line in raw.lines["load_reports"]:
        if line["source"] == "zookeeper":
            line["version"] += {HOT: 3, WARM: 1, COLD: 1}[line["broker"]]
    row, figure = tables(spark, tmp_path, before, raw), reported(raw)
    # Three reports before, all after the node; then five, of which two of the bundle's own broker were replaced.
    assert (row["averages_folded_samples"], row["averages_unknown_samples"]) == (3 + 3, 2)
    expected = after(stored(raw, "shortTermData"), 10, *(8 * [figure]))
    assert row["short_term_msg_rate_in_per_s"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("old", [False, True], ids=["without a node", "with an old one"])
def test_what_the_leader_no_longer_stores_goes_on_with_a_sample_for_every_report(
    spark: SparkSession, tmp_path: Path, old: bool
) -> None:
    """From 4.0 on it stores ten bundles for each broker: of most bundles of a larger cluster, there is no node."""
    before = cluster(FIRST - timedelta(seconds=200), hot=40, warm=30, cold=20)
    raw = cluster(hot=120, warm=100, cold=50)
    for one in (before, raw):
        (node,) = (line for line in one.lines["bundle_data"] if line["bundle"] == BUSY)
        node["modifiedAt"] -= 3600 * SECOND_MS
        if not old:
            one.lines["bundle_data"].remove(node)
    before.broker_report(HOT, "zookeeper")["lastStats"][BUSY].update(dict.fromkeys(RATES, 8000.0))
    for line in raw.lines["load_reports"]:
        if line["source"] == "zookeeper":
            line["version"] += {HOT: 3, WARM: 1, COLD: 1}[line["broker"]]
    row, figure = tables(spark, tmp_path, before, raw), reported(raw)
    assert (row["averages_origin"], row["short_term_samples"]) == ("folded", 1 + 5)
    assert (row["averages_folded_samples"], row["averages_unknown_samples"]) == (3, 2)
    half_way = (8000.0 + figure) / 2
    assert row["short_term_msg_rate_in_per_s"] == pytest.approx((8000.0 + 2 * half_way + 3 * figure) / 6, rel=1e-12)


@pytest.mark.full
@pytest.mark.parametrize(("longest_minutes", "shown", "unknown"), [(1, 1, 0), (15, 1, 1)])
def test_a_report_that_no_snapshot_shows_came_in_time(
    spark: SparkSession, tmp_path: Path, longest_minutes: int, shown: int, unknown: int
) -> None:
    """Hot wrote 260 s and 10 s ago and once between: 200 s ago if that was due, before the node; else half-way."""
    before = cluster(FIRST - timedelta(seconds=240), stored_ago_s=100, hot=20, warm=30, cold=30)
    raw = cluster(stored_ago_s=150, hot=10, warm=270, cold=270)
    for line in raw.lines["load_reports"]:
        if line["source"] == "zookeeper":
            line["version"] += {HOT: 2, WARM: 0, COLD: 0}[line["broker"]]
    for line in raw.lines["settings"]:
        line["values"]["loadBalancerReportUpdateMaxIntervalMinutes"] = str(longest_minutes)
    row = tables(spark, tmp_path, before, raw)
    assert (row["averages_folded_samples"], row["averages_unknown_samples"]) == (shown, unknown)


@pytest.mark.full
def test_a_node_without_its_number_of_samples_counts_as_full(spark: SparkSession, tmp_path: Path) -> None:
    raw = cluster(hot=200, warm=310, cold=310)
    for line in raw.lines["bundle_data"]:
        del line["document"]["shortTermData"]["numSamples"]
    row = tables(spark, tmp_path, raw)
    expected = after(stored(raw, "shortTermData"), 10, reported(raw))
    assert row["short_term_msg_rate_in_per_s"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("bundle", IMPOSSIBLE, ids=["none", "full"])
def test_a_number_of_samples_that_can_not_be_counts_as_the_nearest(bundle: str, replaced: Replaced) -> None:
    _, nearest = IMPOSSIBLE[bundle]
    row, raw = replaced.row(bundle), replaced.raw
    assert row["short_term_samples"] == min(nearest + 3, 10)
    expected = after(stored(raw, "shortTermData", bundle), max(nearest, 1), *(3 * [reported(raw, bundle)]))
    assert row["short_term_msg_rate_in_per_s"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.full
def test_both_views_have_the_leaders_averages(spark: SparkSession, tmp_path: Path) -> None:
    raw = cluster(hot=200, warm=100, cold=50)
    snapshot = raw.write(Root(str(tmp_path), "test"))
    normalize(spark, snapshot)
    fresh, published = (cluster_state(snapshot, view).bundles for view in ("fresh", "published"))
    assert (fresh.short_term == published.short_term).all()
    assert fresh.folded_samples.max() == 3


@pytest.mark.slow
def test_of_two_reports_of_one_moment_the_same_counts_in_any_number_of_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    raw = cluster(hot=60, warm=60, cold=60)
    moved = {**raw.broker_report(HOT, "zookeeper")["lastStats"][BUSY], "msgRateIn": 7.0}
    raw.broker_report(WARM, "zookeeper")["lastStats"][BUSY] = moved
    spark.conf.set("spark.sql.shuffle.partitions", 8)
    try:
        row = tables(spark, tmp_path, raw)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", 1)
    # One sample for the report of each broker.
    expected = after(stored(raw, "shortTermData"), 10, 7.0, 7.0, 7.0)
    assert row["short_term_msg_rate_in_per_s"] == pytest.approx(expected)
