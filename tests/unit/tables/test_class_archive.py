"""An environment has an archive of Java's classes if it was made one, and only for the Java and jars it has now."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.tables import class_archive
from pulsar_advisor.tables.class_archive import class_archive_options


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java's library."""
    library = tmp_path / "java" / "lib" / "server" / "libjvm.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    return library


@pytest.fixture
def folder(tmp_path: Path, java: Path) -> Path:
    folder = tmp_path / "var"
    folder.mkdir()
    return folder


def archive_made(folder: Path) -> Path:
    """The archive that Java would make, made."""
    first = class_archive_options(folder).split()[0]
    archive = Path(first.removeprefix("-XX:ArchiveClassesAtExit=").strip('"'))
    archive.write_bytes(b"classes")
    return archive


def test_without_a_folder_for_it_there_is_no_archive(tmp_path: Path) -> None:
    assert class_archive_options(tmp_path / "none") == ""


def test_an_archive_that_was_made_is_used(folder: Path) -> None:
    archive = archive_made(folder)
    assert class_archive_options(folder).split()[0] == f'-XX:SharedArchiveFile="{archive}"'


def test_with_another_java_it_is_made_again_in_its_place(folder: Path, java: Path) -> None:
    stale = archive_made(folder)
    java.write_bytes(b"17.0.15")
    assert "-XX:ArchiveClassesAtExit" in class_archive_options(folder)
    assert not stale.exists()


def test_with_other_jars_it_is_made_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive_made(folder)
    monkeypatch.setattr(class_archive.pyspark, "__file__", str(tmp_path / "other" / "__init__.py"))
    assert "-XX:ArchiveClassesAtExit" in class_archive_options(folder)


def test_under_spark_submit_whose_java_runs_already_an_archive_stays(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = archive_made(folder)
    # There, PySpark is imported from an archive without jars beside it.
    monkeypatch.setattr(class_archive.pyspark, "__file__", str(tmp_path / "pyspark.zip" / "__init__.py"))
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "40000")
    assert class_archive_options(folder) == ""
    assert archive.exists()
