"""A file is whole wherever it shows, and still there after a power failure."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from upath import UPath

from pulsar_advisor.storage.files import write_file


def test_a_file_and_its_name_are_on_disk_once_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "new" / "file"
    synced: list[tuple[str, bool]] = []
    sync = os.fsync

    def noted(number: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(number).st_mode) else f"{os.fstat(number).st_size} bytes"
        synced.append((kind, file.exists()))
        sync(number)

    monkeypatch.setattr(os, "fsync", noted)
    write_file(UPath(file), b"content")
    assert synced == [("7 bytes", False), ("folder", True)]
    assert file.read_bytes() == b"content"
