"""Folded days are copied into another root, where they show the same, under other names if that is asked for."""

from pathlib import Path

import pytest

from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import Refused, StorageError, UsageError
from pulsar_advisor.stages.export_history import run as export
from pulsar_advisor.stages.fold import run as fold
from pulsar_advisor.stages.trend import run as trend
from pulsar_advisor.stages.verify_history import run as verify
from pulsar_advisor.storage.files import sha256_hex, write_file
from pulsar_advisor.storage.history import folded_days
from pulsar_advisor.storage.lease import LEASE
from pulsar_advisor.storage.root import Root
from written_tables import broker, snapshot_of_one_bundle, written

DAYS = ("20261121", "20261122")
BROKERS = ("secret-a:8080", "secret-b:8080")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    for day, owner in zip(DAYS, BROKERS, strict=True):
        root = snapshot_of_one_bundle(tmp_path / "root", f"{day}T080000Z", owner, brokers=BROKERS, namespace="secret/n")
        fold(root.day(day))
    return root


def test_an_exported_history_shows_the_same(root: Root, tmp_path: Path) -> None:
    written = list(export(root, str(tmp_path / "other"), pseudonyms=False))
    assert [day.day for day in written] == list(DAYS)
    other = Root(str(tmp_path / "other"), root.cluster)
    assert verify(other) == (2, [])
    assert trend(other, 28) == trend(root, 28)


def test_two_clusters_are_not_exported_into_one_folder_under_one_pseudonym_at_once(root: Root, tmp_path: Path) -> None:
    other = snapshot_of_one_bundle(tmp_path / "another", f"{DAYS[0]}T080000Z", BROKERS[0], brokers=BROKERS)
    fold(other.day(DAYS[0]))
    first = export(root, str(tmp_path / "other"), pseudonyms=True)
    next(first)
    Root(str(tmp_path / "other"), "cluster").day(DAYS[0]).result_file.unlink()  # as before it was written
    with pytest.raises(Refused, match=r"days are being exported to .* by another process now"):
        next(export(other, str(tmp_path / "other"), pseudonyms=True))
    assert [day.day for day in first] == [DAYS[1]]


def test_whoever_was_overtaken_adds_no_day_under_other_pseudonyms(root: Root, tmp_path: Path) -> None:
    other = Root(str(tmp_path / "other"), "cluster")
    first = export(root, other.url, pseudonyms=True)
    next(first)
    (other.of_cluster("history/result") / LEASE).unlink()  # it was silent for too long
    with pytest.raises(Refused, match="was taken over by another process"):
        next(first)
    assert folded_days(other)[0][1:] == []


def test_under_pseudonyms_nobody_is_named_and_the_same_happened(root: Root, tmp_path: Path) -> None:
    list(export(root, str(tmp_path / "other"), pseudonyms=True))
    other = Root(str(tmp_path / "other"), "cluster")
    assert trend(other, 28)[1].moves == trend(root, 28)[1].moves == 1
    files = [path for path in (tmp_path / "other").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"secret" in path.read_bytes() or f"cluster={root.cluster}" in path.parts]


def test_under_pseudonyms_no_hash_of_a_validation_confirms_a_guessed_name(root: Root, tmp_path: Path) -> None:
    snapshot = f"{DAYS[0]}T080000Z"
    passed = Validation(
        cluster=root.cluster, snapshot=snapshot, manifest_sha256="", suites_sha256="", success=True, results=()
    )
    write_file(root.snapshot(snapshot).result_file("validate"), passed.content())
    assert fold(root.day(DAYS[0])).snapshots[0].validation_sha256 == sha256_hex(passed.content())
    days = export(root, str(tmp_path / "other"), pseudonyms=True)
    assert [one.validation_sha256 for day in days for one in day.snapshots] == [None, None]


def test_clusters_that_had_one_name_in_paths_have_two_under_pseudonyms(root: Root, tmp_path: Path) -> None:
    identity = {"identity": {"cluster_name": "secret-other", "broker_ids": []}}
    written(tmp_path / "root", identity, snapshot="20261123T080000Z", brokers=[broker("secret-a:8080")])
    fold(root.day("20261123"))
    names = [day.cluster_name for day in export(root, str(tmp_path / "other"), pseudonyms=True)]
    assert names == ["cluster-1", "cluster-1", "cluster-2"]
    assert trend(Root(str(tmp_path / "other"), "cluster"), 28)[0] == 1


def test_under_pseudonyms_no_ledger_has_sealed_a_day(root: Root, tmp_path: Path) -> None:
    open_ledger(root.ledger_url).close()
    written(root.path, snapshot=f"{DAYS[1]}T090000Z", brokers=[broker("secret-a:8080")])
    assert fold(root.day(DAYS[1])).is_sealed
    list(export(root, str(tmp_path / "other"), pseudonyms=True))
    assert verify(Root(str(tmp_path / "other"), "cluster")) == (2, [])


def test_what_is_there_is_not_mixed_with_what_is_exported(root: Root, tmp_path: Path) -> None:
    list(export(root, str(tmp_path / "other"), pseudonyms=True))
    with pytest.raises(UsageError, match="has days of cluster 'cluster': choose another folder"):
        list(export(root, str(tmp_path / "other"), pseudonyms=True))


def test_without_a_folded_day_there_is_nothing_to_export(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run `history fold`"):
        list(export(Root(str(tmp_path), "test"), str(tmp_path / "other"), pseudonyms=False))


def test_a_name_that_came_after_the_pseudonyms_were_found_ends_the_export(root: Root, tmp_path: Path) -> None:
    days = export(root, str(tmp_path / "other"), pseudonyms=True)
    next(days)
    new = "secret-c:8080"
    snapshot_of_one_bundle(root.path, f"{DAYS[1]}T090000Z", new, brokers=[new], namespace="secret/n")
    fold(root.day(DAYS[1]))
    with pytest.raises(StorageError, match="20261122 was folded again meanwhile, with new names: export into another"):
        list(days)
