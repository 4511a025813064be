"""A capture without progress, and what it wrote, read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.capture.raw_files import read_lines
from pulsar_advisor.stages.capture import take_snapshot
from pulsar_advisor.storage.root import MANIFEST, Root, Snapshot


class Silence:
    """Progress that is ignored."""

    def begin(self, step: str, total: int) -> None: ...

    def advance(self) -> None: ...


def capture(options: CaptureOptions, root: Root, progress: Silence | None = None) -> Snapshot:
    return take_snapshot(options, root, progress or Silence())


def manifest_of(snapshot: Snapshot) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((snapshot.folder("raw") / MANIFEST).read_bytes())
    return document


def lines_of(snapshot: Snapshot, surface: str) -> list[dict[str, Any]]:
    """The lines of a surface, of all its files."""
    folder = snapshot.folder("raw")
    files = [file["path"] for file in manifest_of(snapshot)["files"] if file["surface"] == surface]
    return [msgspec.json.decode(line) for path in files for line in read_lines((folder / path).read_bytes())]


class Captured:
    """A captured snapshot, read back."""

    def __init__(self, root: Root, options: CaptureOptions, progress: Silence | None = None) -> None:
        self.root, self.snapshot = root, capture(options, root, progress)
        self.folder = self.snapshot.folder("raw")
        self.manifest = manifest_of(self.snapshot)

    def lines(self, surface: str) -> list[dict[str, Any]]:
        return lines_of(self.snapshot, surface)


def everything_in(root: Root) -> bytes:
    """All bytes under a root, decompressed."""
    content = bytearray()
    for path in sorted(Path(root.url).rglob("*")):
        if path.is_file():
            raw = path.read_bytes()
            content += zstandard.ZstdDecompressor().stream_reader(raw).read() if path.suffix == ".zst" else raw
    return bytes(content)
