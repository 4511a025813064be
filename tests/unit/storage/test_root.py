"""A snapshot exists if and only if its manifest does, and nothing is read as something it isn't."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

import documents
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.documents.manifest import Manifest
from pulsar_advisor.documents.validation import Validation
from pulsar_advisor.execution.ledger.address import ledger_url
from pulsar_advisor.model.cluster.snapshot_id import snapshot_id
from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.model.text.folder_address import require_no_password
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.results import read_document
from pulsar_advisor.storage.root import Root, Snapshot


def take_snapshot(snapshot: Snapshot) -> None:
    write_file(snapshot.folder("raw") / "manifest.json", b"{}")


def test_latest_is_the_newest_snapshot_with_a_manifest(tmp_path: Path) -> None:
    root = Root(str(tmp_path), "c")
    take_snapshot(root.snapshot("20261121T083000Z"))
    take_snapshot(root.snapshot("20261121T084500Z"))
    root.snapshot("20261121T090000Z").folder("raw").mkdir(parents=True)
    assert root.resolve("latest").id == "20261121T084500Z"


def test_thousands_of_snapshots_are_listed_without_opening_a_manifest(tmp_path: Path) -> None:
    root = Root(str(tmp_path), "c")
    first = datetime(2026, 1, 1, tzinfo=UTC)
    ids = [snapshot_id(first + timedelta(minutes=15 * number)) for number in range(3000)]
    for snapshot in ids:
        # there, but nothing that can be opened
        (root.snapshot(snapshot).folder("raw") / "manifest.json").mkdir(parents=True)
    assert root.snapshots() == ids
    assert root.resolve("latest").id == ids[-1]


def test_going_back_from_a_snapshot_looks_no_further_than_asked(tmp_path: Path) -> None:
    root = Root(str(tmp_path), "c")
    for snapshot in ("20261121T083000Z", "20261121T084500Z", "20261121T090000Z"):
        root.snapshot(snapshot).folder("raw").mkdir(parents=True)
    take_snapshot(root.snapshot("20261121T090000Z"))
    take_snapshot(root.snapshot("20261121T084500Z"))
    earlier = root.newest_first(before="20261121T090000Z")
    assert next(earlier).id == "20261121T084500Z"
    take_snapshot(root.snapshot("20261121T083000Z"))
    assert [one.id for one in earlier] == ["20261121T083000Z"]


def test_a_snapshot_is_one_key_of_caches_and_its_text_is_its_id(tmp_path: Path) -> None:
    one, other = (Root(str(tmp_path), "c").snapshot("20261121T083000Z") for _ in range(2))
    assert one.folder("raw").name == f"snapshot={one}" == "snapshot=20261121T083000Z"  # its root now has a path
    assert {one: "read"}[other] == "read"
    assert one != Root(str(tmp_path), "another").snapshot("20261121T083000Z")


def test_without_a_snapshot_latest_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run `capture`"):
        Root(str(tmp_path), "c").resolve("latest")


def test_a_root_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"root .*/file is a file: name a folder"):
        Root(str(tmp_path / "file"), "c").snapshots()


@pytest.mark.parametrize(
    "url", ["ftp://ops:s3cret@host/root", "s3://KEY:s3cr@et@bucket", "s3://KEY:a/s3cret@bucket", "sftp://:s3cret@host"]
)
def test_a_root_with_a_password_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(UsageError, match="the address of a root or folder holds a password") as refused:
        Root(url, "c")
    assert "s3cr" not in str(refused.value)


@pytest.mark.parametrize("url", ["file://advisor", "file://localhost/advisor", "file:advisor"])
def test_a_files_url_is_not_looked_up_in_the_working_folder(url: str) -> None:
    with pytest.raises(UsageError, match=r"is not an absolute path: give file:///PATH"):
        Root(url, "c")


def test_a_folder_whose_name_is_no_text_is_refused_as_spark_would_not_find_it() -> None:
    with pytest.raises(UsageError, match=r"'/tour\\udce9' is not UTF-8: rename it"):
        Root(os.fsdecode(b"/tour\xe9"), "c")


def test_a_name_that_other_libraries_would_not_find_in_this_locale_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsencode", lambda name: name.encode("iso-8859-9"))
    with pytest.raises(UsageError, match=r"'/küme' is not UTF-8: rename it, or, in a locale .* LC_ALL=C.UTF"):
        Root("/küme", "prod")
    with pytest.raises(UsageError, match="'/日' is not UTF-8"):
        Root("/日", "prod")
    assert Root("/cluster", "prod").url == "/cluster"


@pytest.mark.parametrize("url", ["file:///advisor", "file:/advisor", "/advisor"])
def test_a_files_url_is_its_path(url: str) -> None:
    assert Root(url, "c").ledger_url == "sqlite:////advisor/ledger.sqlite"


@pytest.mark.parametrize("url", ["hdfs://host:8020/a@b", "hdfs://[::1]:8020/a@b", "abfs://folder@account/a:b"])
def test_an_at_sign_after_a_port_is_part_of_a_path(url: str) -> None:
    require_no_password(url)


def test_a_snapshot_of_another_cluster_is_not_found(tmp_path: Path) -> None:
    take_snapshot(Root(str(tmp_path), "one").snapshot("20261121T083000Z"))
    with pytest.raises(UsageError, match=r"no cluster 'two' under .*; there are: one"):
        Root(str(tmp_path), "two").resolve("20261121T083000Z")


def test_a_cluster_with_folded_days_alone_is_known(tmp_path: Path) -> None:
    Root(str(tmp_path), "one").day("20261121").folder("result").mkdir(parents=True)
    Root(str(tmp_path), "one").require_known()
    with pytest.raises(UsageError, match=r"no cluster 'two' under .*; there are: one"):
        Root(str(tmp_path), "two").require_known()


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", "-x"])
def test_a_cluster_name_can_not_leave_the_root(name: str) -> None:
    with pytest.raises(UsageError, match="can't be part of a path"):
        Root("anywhere", name)


def test_a_document_of_an_unknown_version_is_refused_by_name(tmp_path: Path) -> None:
    root = Root(str(tmp_path), "c")
    path = root.path / "result.json"
    write_file(path, b'{"schema": "pulsar-advisor/raw-snapshot/99"}')
    with pytest.raises(StorageError, match="pulsar-advisor/raw-snapshot/99"):
        read_document(path, Manifest)


def test_a_place_that_can_not_be_written_is_one_clear_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(StorageError, match="can't write"):
        write_file(Root(str(blocked), "c").path / "x" / "result.json", b"{}")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda manifest: manifest.pop("load_manager"), r"load_manager: Field required"),
        (
            lambda manifest: manifest.update(load_manager="other"),
            "load_manager: Input should be 'modular', 'simple' or 'extensible'",
        ),
        (lambda manifest: manifest.update(skew_ms="soon"), r"skew_ms: Input should be a valid integer"),
        (lambda manifest: manifest.update(moved_bundles="x"), r"moved_bundles: Input should be a valid array"),
    ],
    ids=["lacks", "unknown", "text", "one"],
)
def test_a_manifest_that_was_changed_by_hand_is_refused(
    tmp_path: Path, changed: Callable[[dict[str, Any]], Any], says: str
) -> None:
    manifest = as_json(documents.manifest())
    changed(manifest)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest))
    with pytest.raises(StorageError, match=rf"manifest.json is not as `capture` writes it \(.*{says}\): put it back"):
        read_document(UPath(path), Manifest)


def test_a_validation_result_that_was_cut_is_refused(tmp_path: Path) -> None:
    result = json.loads(documents.validation(documents.check()).content())
    del result["results"][0]["severity"]
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result))
    with pytest.raises(StorageError, match=r"results\.0\.severity: Field required"):
        read_document(UPath(path), Validation)


@pytest.mark.parametrize("url", ["foo://bucket/root", "hf://bucket/root"], ids=["no protocol", "no package"])
def test_a_url_that_nothing_installed_can_open_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=rf"root '{url}' can't be opened: .* whose package is installed"):
        Root(url, "c")


def test_the_default_ledger_lies_beside_a_local_root(tmp_path: Path) -> None:
    assert Root(str(tmp_path), "demo").ledger_url == f"sqlite:///{tmp_path}/ledger.sqlite"


@pytest.mark.parametrize("folder", ["My Data", "My%20Data", "what?", "a#b", "ä+b"])
def test_the_default_ledger_of_a_root_of_any_name_lies_beside_it(tmp_path: Path, folder: str) -> None:
    url = ledger_url(Root(str(tmp_path / folder), "demo").ledger_url)
    assert (url.database, url.query) == (f"{tmp_path}/{folder}/ledger.sqlite", {})


def test_a_file_url_is_the_folder_it_names(tmp_path: Path) -> None:
    root = Root(f"file://{tmp_path}", "demo")
    assert (root.path, root.ledger_url) == (UPath(tmp_path), f"sqlite:///{tmp_path}/ledger.sqlite")
    write_file(UPath(f"file://{tmp_path}/a/report.html"), b"whole")
    assert (tmp_path / "a" / "report.html").read_bytes() == b"whole"


def test_an_object_store_has_no_default_ledger() -> None:
    with pytest.raises(UsageError, match="name one with --ledger URL"):
        _ = Root("memory://bucket/advisor", "demo").ledger_url
