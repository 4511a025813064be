"""A snapshot in words: what it holds, what it lacks, and how far it has come."""

from __future__ import annotations

import json

import pytest

import documents
from captures import capture
from pulsar_advisor.snapshots.summary import summary_lines
from pulsar_advisor.stages.show import run as summary
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import MANIFEST, RESULT, Root, Snapshot
from unit.capture.fake_cluster import FakeCluster


def test_a_recorded_snapshot_is_told_from_its_manifest(recorded: Snapshot) -> None:
    found = summary(recorded)
    assert (found.cluster_name, found.pulsar_version, found.load_manager) == ("live", "4.0.8", "modular")
    assert (len(found.brokers), found.zookeeper, found.missing, found.stages) == (3, True, (), {})
    assert found.surfaces["topic_stats"] == 46  # of three files, one a broker
    assert found.surfaces["resource_quotas"] == 0  # asked for, and there are none
    assert "  topic_stats                      46 lines" in list(summary_lines(found))
    one = found.model_copy(update={"surfaces": {"topic_stats": 1}})
    assert "  topic_stats                       1 line" in list(summary_lines(one))


def test_only_reports_are_told_of_the_folder_of_reports(recorded: Snapshot) -> None:
    for name in ("report.html", "report.json", ".nfs00000001", ".report.html.9f.partial", "Thumbs.db"):
        write_file(recorded.folder("reports") / name, b"")
    assert summary(recorded).stages["reported"] == "report.html, report.json"


@pytest.mark.parametrize(
    ("urls", "zookeeper", "sources"),
    [
        (["http://b:8080"], True, "from admin REST and the metadata store;"),
        (["http://b:8080"], False, "from admin REST;"),
        ([], True, "from the metadata store;"),
    ],
)
def test_the_ways_in_are_told(recorded: Snapshot, urls: list[str], zookeeper: bool, sources: str) -> None:
    path = recorded.folder("raw") / MANIFEST
    manifest = json.loads(path.read_bytes())
    write_file(path, json.dumps(manifest | {"sources": {"admin_urls": urls, "zookeeper": zookeeper}}).encode())
    assert any(sources in line for line in summary_lines(summary(recorded)))


def test_what_is_missing_is_told_with_its_reason(cluster: FakeCluster, root: Root) -> None:
    cluster.second.stop()
    found = summary(capture(cluster.options(), root))
    assert found.incomplete_brokers == (cluster.second.id,)
    assert any(entry.startswith(f"topic_stats of {cluster.second.id}: ") for entry in found.missing)
    assert any(entry.startswith("bundle_data: only the metadata store holds it") for entry in found.missing)


def test_a_document_that_could_not_be_decoded_is_told(cluster: FakeCluster, root: Root) -> None:
    cluster.first.answers("/broker-stats/load-report", "{not json")
    found = summary(capture(cluster.options(), root))
    assert [entry.partition(": ")[0] for entry in found.failures] == [f"load_reports of {cluster.first.id}"]


def test_every_stage_that_is_done_is_told(recorded: Snapshot) -> None:
    normalized = documents.tables_result(tables={"brokers": 3, "topics": 84})
    write_file(recorded.folder("tables/result") / RESULT, normalized.content())
    results = (documents.check(severity="warning", success=False), documents.check(severity="critical"))
    write_file(recorded.folder("validation") / RESULT, documents.validation(*results).content())
    made = documents.recommendation(plan=None, digest=None, sentence="No unload can be judged.")
    write_file(recorded.folder("plans") / "recommendation.json", made.content())
    assert summary(recorded).stages == {
        "normalized": "87 rows, 0 problems",
        "validated": "fit for use; failed: 1 warning",
        "recommended": "0 plans; advice: No unload can be judged.",
    }
