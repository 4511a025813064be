"""What the manifest alone says becomes rows without Spark."""

from __future__ import annotations

import pytest

import documents
from pulsar_advisor.documents.manifest import Failure, File, Missing, Read
from pulsar_advisor.tables.captured import captured_documents, gaps

READ = Read(surface="topic_stats", target="b:8080", started_at_ms=10, finished_at_ms=20)
OF_ANOTHER = READ.model_copy(update={"target": "c:8080", "finished_at_ms": 99})
FILE = File(path="topic_stats/0", surface="topic_stats", broker="b:8080", rows=3, bytes=13, sha256="0" * 64)


def test_a_file_was_read_from_the_first_read_of_its_broker_to_the_last() -> None:
    later = READ.model_copy(update={"started_at_ms": 30, "finished_at_ms": 45})
    manifest = documents.manifest(reads=[READ, later], files=[FILE])
    (row,) = captured_documents(manifest, {"topic_stats/0": (3, 1)})
    assert row == {**dict(FILE), "unreadable_rows": 1, "read_started_at_ms": 10, "read_finished_at_ms": 45}


def test_reads_of_another_broker_are_not_its() -> None:
    manifest = documents.manifest(reads=[READ, OF_ANOTHER], files=[FILE])
    (row,) = captured_documents(manifest, {})
    assert row["read_finished_at_ms"] == 20


def test_a_file_of_the_whole_cluster_took_all_reads_of_its_surface() -> None:
    manifest = documents.manifest(reads=[READ, OF_ANOTHER], files=[FILE.model_copy(update={"broker": None})])
    (row,) = captured_documents(manifest, {})
    assert (row["read_started_at_ms"], row["read_finished_at_ms"]) == (10, 99)


def test_a_file_that_no_read_accounts_for_has_no_times() -> None:
    (row,) = captured_documents(documents.manifest(files=[FILE]), {})
    assert (row["unreadable_rows"], row["read_started_at_ms"]) == (0, None)


@pytest.mark.parametrize(
    ("reason", "problem"),
    [("the broker refused it (403)", "missing"), ("not available before 3.0", "not_available")],
)
def test_what_a_release_does_not_have_is_not_missing(reason: str, problem: str) -> None:
    missing = Missing(surface="bundle_data", broker=None, reason=reason)
    (row,) = gaps(documents.manifest(missing=[missing]))
    assert row == {"problem": problem, "surface": "bundle_data", "broker": None, "detail": reason}


def test_what_is_missing_of_a_namespace_names_it() -> None:
    reason = "not read: the budget of 5 requests is spent"
    missing = Missing(surface="topic_names", broker=None, reason=reason, namespace="shop/orders")
    (row,) = gaps(documents.manifest(missing=[missing]))
    assert row["detail"] == f"shop/orders: {reason}"


def test_a_failure_is_given_with_its_error() -> None:
    failure = Failure(surface="settings", broker="b:8080", error="timed out")
    (row,) = gaps(documents.manifest(failures=[failure]))
    assert (row["problem"], row["broker"], row["detail"]) == ("failure", "b:8080", "timed out")
