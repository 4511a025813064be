from pathlib import Path

import pytest
from upath import UPath

from pulsar_advisor.documents.manifest import File, Manifest
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.storage.results import read_document
from pulsar_advisor.storage.root import MANIFEST, Root
from pulsar_advisor.tables.raw import spark_url, url_to_read, verify_files
from snapshots import skewed_modular_cluster


@pytest.fixture
def folder(tmp_path: Path) -> UPath:
    root = Root(str(tmp_path), "test")
    return skewed_modular_cluster().write(root).folder("raw")


def manifest_files(folder: UPath) -> tuple[File, ...]:
    return read_document(folder / MANIFEST, Manifest).files


def test_files_as_captured_are_accepted(folder: UPath) -> None:
    verify_files(folder, manifest_files(folder))


def test_a_file_with_one_other_byte_is_named(folder: UPath) -> None:
    path = folder / "topic_stats" / "1.jsonl.zst"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataNotFit, match=r"topic_stats/1\.jsonl\.zst is not the file that was captured"):
        verify_files(folder, manifest_files(folder))


def test_a_file_that_is_gone_is_named(folder: UPath) -> None:
    (folder / "brokers.jsonl.zst").unlink()
    with pytest.raises(DataNotFit, match=r"brokers\.jsonl\.zst is in the manifest but does not exist"):
        verify_files(folder, manifest_files(folder))


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/data/a b", "file:///data/a b"),
        ("s3://bucket/root", "s3a://bucket/root"),
        ("gs://bucket/root", "gs://bucket/root"),
    ],
)
def test_hadoop_knows_a_path_by(path: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark_url(UPath(path)) == url_to_read(UPath(path)) == url


def test_a_reader_takes_no_part_of_a_path_for_a_pattern() -> None:
    assert url_to_read(UPath("/data/[prod] {a,b}?*")) == r"file:///data/\[prod\] \{a,b\}\?\*"
