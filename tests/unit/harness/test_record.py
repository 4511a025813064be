"""The recorded capture is one reproducible file."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

from harness.record import pack


def write_root(root: Path, names: list[str], *, time_s: int) -> Path:
    for name in names:
        file = root / "raw" / "cluster=demo" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        os.utime(file, (time_s, time_s))
    return root


def test_equal_content_gives_equal_bytes_whatever_the_order_and_the_time_of_writing(tmp_path: Path) -> None:
    pack(write_root(tmp_path / "first", ["manifest.json", "brokers.zst"], time_s=1), tmp_path / "first.tar")
    pack(write_root(tmp_path / "second", ["brokers.zst", "manifest.json"], time_s=2), tmp_path / "second.tar")
    assert (tmp_path / "first.tar").read_bytes() == (tmp_path / "second.tar").read_bytes()


def test_only_the_raw_snapshot_is_packed_with_paths_below_the_root(tmp_path: Path) -> None:
    root = write_root(tmp_path / "root", ["manifest.json"], time_s=1)
    (root / "ledger.db").write_text("stays")

    pack(root, tmp_path / "packed.tar")

    with tarfile.open(tmp_path / "packed.tar") as tar:
        assert tar.getnames() == ["raw/cluster=demo/manifest.json"]
