"""Captures of real Simple and Extensible brokers: every figure in the tables follows from what the brokers said."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from pyspark.sql import SparkSession

import documents
from captures import lines_of
from pulsar_advisor.capture.raw_files import RawFile
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.model.cluster.cluster_state import FIGURES, NO_ROW, ClusterState
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.files import sha256_hex
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot
from pulsar_advisor.tables.read_table import read_table
from pulsar_advisor.tables.state import cluster_state

pytestmark = [pytest.mark.spark, pytest.mark.full]

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
SNAPSHOT = "20261121T120000Z"


@dataclass(frozen=True)
class Recorded:
    """A recorded capture with its tables and their validation."""

    root: Root
    validation: Validation

    @property
    def state(self) -> ClusterState:
        return cluster_state(self.root.snapshot(SNAPSHOT))

    def rows(self, table: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = read_table(self.root.snapshot(SNAPSHOT), table).to_pylist()
        return rows

    def lines(self, surface: str) -> list[dict[str, Any]]:
        return lines_of(self.root.snapshot(SNAPSHOT), surface)


def recorded(spark: SparkSession, folder: Path, name: str) -> Recorded:
    root = Root(str(folder), name)
    with tarfile.open(RECORDED / f"{name}-4.0.8.tar") as archive:
        archive.extractall(Path(str(root.snapshot(SNAPSHOT).folder("raw"))), filter="data")
    normalize(spark, root.snapshot(SNAPSHOT))
    return Recorded(root, validate(spark, root.snapshot(SNAPSHOT)))


@pytest.fixture(scope="module")
def extensible(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(spark, tmp_path_factory.mktemp("extensible"), "extensible")


@pytest.fixture(scope="module")
def simple(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(spark, tmp_path_factory.mktemp("simple"), "simple")


def exact_sums(lines: list[dict[str, Any]], by: str) -> dict[str, list[float]]:
    """Sums over topics in decimal arithmetic, by broker or by bundle, turned into doubles once."""
    sums: dict[str, list[Decimal]] = {}
    for line in lines:
        key = line["broker"] if by == "broker" else f"{line['namespace']}/{line['range']}"
        row = sums.setdefault(key, [Decimal(0)] * len(FIGURES))
        sums[key] = [total + Decimal(str(line["stats"][figure])) for total, figure in zip(row, FIGURES, strict=True)]
    return {key: [float(total) for total in row] for key, row in sums.items()}


@pytest.mark.parametrize("manager", ["extensible", "simple"])
def test_a_capture_of_real_brokers_raises_nothing(manager: str, request: pytest.FixtureRequest) -> None:
    found: Recorded = request.getfixturevalue(manager)
    assert [result.check for result in found.validation.results if not result.success] == []
    assert found.state.load_manager == manager
    assert found.state.leader != NO_ROW
    assert found.state.brokers.complete.all()


def test_extensible_figures_are_exact_sums_over_topics(extensible: Recorded) -> None:
    state, lines = extensible.state, extensible.lines("topic_stats")
    of_brokers, of_bundles = exact_sums(lines, "broker"), exact_sums(lines, "bundle")
    np.testing.assert_array_equal(state.brokers.traffic, [of_brokers[broker] for broker in state.brokers.ids])
    reported = np.flatnonzero(state.bundles.reported).tolist()
    assert {state.bundle_name(row) for row in reported} == of_bundles.keys()
    for row in reported:
        assert state.bundles.traffic[row].tolist() == of_bundles[state.bundle_name(row)]


def test_extensible_counts_are_those_of_the_topics(extensible: Recorded) -> None:
    state, lines = extensible.state, extensible.lines("topic_stats")
    assert state.brokers.topics.tolist() == [
        sum(line["broker"] == broker for line in lines) for broker in state.brokers.ids
    ]
    consumers = sum(
        len(subscription.get("consumers", ()))
        for line in lines
        for subscription in line["stats"].get("subscriptions", {}).values()
    )
    assert consumers > 0
    assert (state.bundles.consumers.sum(), state.brokers.consumers.sum()) == (consumers, consumers)
    assert state.bundles.producers.sum() == sum(line["stats"]["producerCount"] for line in lines)


def test_extensible_usage_is_that_of_each_brokers_own_metrics(extensible: Recorded) -> None:
    metrics = {line["broker"]: line["document"] for line in extensible.lines("broker_metrics")}
    rows = extensible.rows("brokers")
    assert len(rows) == len(metrics) == 3
    for row in rows:
        said = metrics[row["broker"]]
        assert (row["cpu_usage"], row["cpu_limit"]) == (said["brk_lb_cpu_usage"], 100)
        assert row["direct_memory_usage"] == said["brk_lb_directMemory_usage"]
        assert (row["weighted_max_ema_ratio"], row["report_source"]) == (said["max_ema"], "metrics")


def test_extensible_owners_are_those_that_say_so(extensible: Recorded) -> None:
    state = extensible.state
    claims = {line["bundle"]: line["broker"] for line in extensible.lines("owned_bundles") if line["pass"] == "end"}
    owned = {
        state.bundle_name(row): state.brokers.ids[state.bundles.owner[row]]
        for row in np.flatnonzero(state.bundles.owner != NO_ROW).tolist()
    }
    assert owned == claims
    assert (state.bundles.listed == (state.bundles.owner != NO_ROW)).all()


def test_extensible_brokers_publish_no_view_of_the_leader(extensible: Recorded) -> None:
    with pytest.raises(DataNotFit, match="no view 'published': Extensible brokers write no load"):
        cluster_state(extensible.root.snapshot(SNAPSHOT), "published")


TOP = ("retail/payments/0x40000000_0x80000000", "retail/orders/0x00000000_0x40000000")
"""Two bundles of the recording that its first broker owns."""


def with_messages(snapshot: Snapshot, started_later_ms: int, surfaces: dict[str, list[dict[str, Any]]]) -> None:
    """The Extensible recording as a snapshot of this id, with messages from the system topics."""
    raw = Path(str(snapshot.folder("raw")))
    with tarfile.open(RECORDED / "extensible-4.0.8.tar") as archive:
        archive.extractall(raw, filter="data")
    manifest = msgspec.json.decode((raw / MANIFEST).read_bytes())
    manifest["started_at_ms"] += started_later_ms
    for surface, lines in surfaces.items():
        file = RawFile()
        file.extend(lines)
        content = file.finish().content
        (raw / f"{surface}.jsonl.zst").write_bytes(content)
        entry = {"path": f"{surface}.jsonl.zst", "surface": surface, "broker": None, "rows": len(lines)}
        manifest["files"].append({**entry, "bytes": len(content), "sha256": sha256_hex(content)})
    (raw / MANIFEST).write_bytes(msgspec.json.encode(manifest))


USAGE = {"cpu": {"usage": 120.0, "limit": 400.0}, "weightedMaxEMA": 0.42, "msgThroughputEMA": 5e5}
TRAFFIC = {"msgRateIn": 7.0, "msgRateOut": 8.0, "msgThroughputIn": 9.0, "msgThroughputOut": 10.0}
TRANSFERRED = {"state": "Owned", "dstBroker": "any", "force": False, "timestamp": 1_795_000_000_000}
LOAD = {**USAGE, **TRAFFIC, "bundleCount": 4, "topics": 5, "updatedAt": 1}


def recorded_brokers() -> list[str]:
    with tarfile.open(RECORDED / "extensible-4.0.8.tar") as archive:
        content = archive.extractfile(MANIFEST)
        assert content is not None
        ids: list[str] = msgspec.json.decode(content.read())["identity"]["broker_ids"]
    return ids


@pytest.fixture(scope="module")
def listened(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The Extensible recording as if two brokers had been heard.

    Of the first one: two loads, top bundles and a channel. The second one withdrew its load.
    """
    root = Root(str(tmp_path_factory.mktemp("listened")), "extensible")
    first, second, *_ = recorded_brokers()
    stats = {"msgRateIn": 1.0, "msgThroughputIn": 3e5, "topics": 2}
    heard = {"broker": first, "readAt": 2, "publishedAt": 1}
    surfaces: dict[str, list[dict[str, Any]]] = {
        "broker_load_data": [
            {**heard, "document": LOAD},
            {**heard, "publishedAt": 0, "document": {**LOAD, "weightedMaxEMA": 0.1}},
            {"broker": second, "readAt": 1, "publishedAt": 1, "document": LOAD},
            {"broker": second, "readAt": 2, "publishedAt": 2, "document": None},
        ],
        "top_bundles": [
            {
                **heard,
                "document": {"topBundlesLoadData": [{"bundleName": bundle, "stats": stats} for bundle in TOP]},
            }
        ],
        "service_unit_states": [
            {"source": "topic", "bundle": TOP[0], "document": {"state": "Splitting", "sourceBroker": first}},
            {"source": "topic", "bundle": TOP[1], "document": {**TRANSFERRED, "sourceBroker": second}},
        ],
    }
    with_messages(root.snapshot(SNAPSHOT), 0, surfaces)
    normalize(spark, root.snapshot(SNAPSHOT))
    return Recorded(root, documents.validation())


def test_what_an_extensible_broker_told_is_the_leaders_view_of_it(listened: Recorded) -> None:
    fresh, published = listened.state, cluster_state(listened.root.snapshot(SNAPSHOT), "published")
    load = published.published_load
    assert load is not None
    assert (load.weighted_max_ema[0], load.msg_throughput_ema[0]) == (0.42, 5e5)
    assert published.brokers.usage[0, 0] == 120.0
    assert published.brokers.traffic[0].tolist() == [7.0, 8.0, 9.0, 10.0]
    positions = {published.bundle_name(row): int(load.top_position[row]) for row in range(len(published.bundles))}
    assert {bundle: position for bundle, position in positions.items() if position != NO_ROW} == {TOP[0]: 0, TOP[1]: 1}
    of_first = (published.bundles.owner == 0) & published.bundles.reported
    assert {published.bundle_name(row) for row in np.flatnonzero(of_first).tolist()} == set(TOP)
    # Two messages, a millisecond apart; the second broker withdrew its own, the third sent none.
    assert load.publishes_every_ms is not None
    assert load.publishes_every_ms.tolist() == [1, 0, 0]
    # The others were not heard, so they are as they were rebuilt.
    np.testing.assert_array_equal(published.brokers.usage[1:], fresh.brokers.usage[1:])
    assert fresh.published_load is None


def test_the_leaders_view_names_its_source_and_the_channels_state_of_a_bundle(listened: Recorded) -> None:
    sources = {(row["view"], row["report_source"]) for row in listened.rows("brokers")}
    assert sources == {("fresh", "metrics"), ("published", "broker_load_data"), ("published", "metrics")}
    states = {
        (row["channel_state"], row["channel_owner"]) for row in listened.rows("bundles") if row["bundle"] == TOP[0]
    }
    assert states == {("Splitting", listened.state.brokers.ids[0])}


def test_the_channel_says_when_a_bundle_was_unloaded(listened: Recorded) -> None:
    unloads = {
        (row["last_unloaded_origin"], row["last_unloaded_at_ms"])
        for row in listened.rows("bundles")
        if row["bundle"] == TOP[1]
    }
    assert unloads == {("owner_acquired", TRANSFERRED["timestamp"])}


def test_simple_throughput_is_summed_over_bundles_as_the_reports_own_repeats_message_rates(simple: Recorded) -> None:
    fresh = {line["broker"]: line["document"] for line in simple.lines("load_reports") if line["source"] == "rest"}
    for broker, traffic in zip(simple.state.brokers.ids, simple.state.brokers.traffic, strict=True):
        report = fresh[broker]
        assert report["msgThroughputIn"] == report["msgRateIn"]
        said = [report["msgRateIn"], report["msgRateOut"]]
        said += [sum(bundle[figure] for bundle in report["bundleStats"].values()) for figure in FIGURES[2:]]
        np.testing.assert_allclose(traffic, said, rtol=1e-12)


@pytest.mark.parametrize(("view", "source"), [("fresh", "rest"), ("published", "zookeeper")])
def test_both_views_of_simple_brokers_are_their_reports(simple: Recorded, view: Any, source: str) -> None:
    state = cluster_state(simple.root.snapshot(SNAPSHOT), view)
    reports = {line["broker"]: line["document"] for line in simple.lines("load_reports") if line["source"] == source}
    for row, broker in enumerate(state.brokers.ids):
        usage = reports[broker]["systemResourceUsage"]
        assert state.brokers.usage[row, 0] == usage["cpu"]["usage"]
        assert state.brokers.limit[row, 3] == usage["bandwidthIn"]["limit"]
    assert state.brokers.bundles.tolist() == [len(reports[broker]["bundleStats"]) for broker in state.brokers.ids]
    figures = {bundle: stats for report in reports.values() for bundle, stats in report["bundleStats"].items()}
    for row in np.flatnonzero(state.bundles.reported).tolist():
        assert state.bundles.traffic[row].tolist() == [figures[state.bundle_name(row)][figure] for figure in FIGURES]


def test_a_silent_broker_has_the_load_it_published_before_if_it_is_about_the_same(
    spark: SparkSession, extensible: Recorded, tmp_path: Path
) -> None:
    fresh = extensible.state
    root = Root(str(tmp_path), "extensible")
    figures = [dict(zip(FIGURES, (row * 1.05).tolist(), strict=True)) for row in fresh.brokers.traffic]
    first, second, *_ = recorded_brokers()

    def load(broker: int) -> dict[str, Any]:
        return {**LOAD, **figures[broker], "bundleCount": int(fresh.brokers.bundles[broker])}

    heard = {"readAt": 1, "publishedAt": 1}
    of_second = {"broker": second, **heard, "document": {**load(1), "msgRateIn": 1e6}}
    of_first = {"broker": first, **heard, "document": load(0)}
    with_messages(root.snapshot(SNAPSHOT), 0, {"broker_load_data": [of_first, of_second]})
    later = "20261121T120100Z"
    third = {"broker": recorded_brokers()[2], **heard, "document": LOAD}
    with_messages(root.snapshot(later), 60_000, {"broker_load_data": [third]})
    for snapshot in (SNAPSHOT, later):
        normalize(spark, root.snapshot(snapshot))
    rows = {row["broker"]: row for row in read_table(root.snapshot(later), "brokers", "published").to_pylist()}
    # The first one would have published a change; the second one's load has changed since, so it did, unheard.
    assert (rows[first]["report_source"], rows[first]["weighted_max_ema_ratio"]) == ("broker_load_data", 0.42)
    assert rows[second]["report_source"] == "metrics"
