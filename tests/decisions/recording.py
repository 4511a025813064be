"""Recorded decisions of live brokers: each shedding cycle of the leader, with the snapshot taken just before it.

A file is one JSON document, compressed as a whole: the snapshots of a recording differ little. It holds what the
brokers did and said, never what the product makes of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import zstandard

from pulsar_advisor.storage.files import read_file
from pulsar_advisor.storage.root import MANIFEST, Snapshot
from snapshots import RawSnapshot

SCHEMA: Final = "pulsar-advisor/decisions/1"
RECORDINGS: Final = Path(__file__).resolve().parents[1] / "data" / "decisions"

_SUFFIX: Final = ".jsonl.zst"
_WINDOW_LOG: Final = 27
"""128 MiB: each snapshot is compressed against all those before it."""


@dataclass(frozen=True)
class Unload:
    """One unload that the leader began. The Simple manager names no destination."""

    bundle: str
    source: str
    destination: str | None


@dataclass(frozen=True)
class Cycle:
    """One shedding cycle of the leader."""

    at_ms: int
    before: str
    """The last snapshot that ended before the cycle."""
    after: str | None
    """The last snapshot before the next cycle, None if the load was changed in between."""
    unloads: tuple[Unload, ...]
    said: tuple[str, ...]
    """What the shedder and the load manager logged in it."""


@dataclass(frozen=True)
class Recording:
    """One run of a live cluster that balanced itself."""

    release: str
    load_manager: str
    shedder: str
    settings: Mapping[str, str]
    """What the brokers were configured with beside the harness's own settings."""
    cycles: tuple[Cycle, ...]
    """In order; those without an unload too."""
    snapshots: Mapping[str, RawSnapshot]
    """By id, in order."""

    @property
    def decisions(self) -> list[Cycle]:
        """The cycles in which something was unloaded."""
        return [cycle for cycle in self.cycles if cycle.unloads]

    def first(self, number: int) -> Recording:
        """The recording as if it had ended after its first `number` cycles."""
        cycles = self.cycles[:number]
        end = max(name for cycle in cycles for name in (cycle.before, cycle.after) if name is not None)
        return replace(
            self, cycles=cycles, snapshots={name: one for name, one in self.snapshots.items() if name <= end}
        )

    def write(self, file: Path) -> None:
        """Write the recording; the file appears whole."""
        document = {
            "schema": SCHEMA,
            "release": self.release,
            "load_manager": self.load_manager,
            "shedder": self.shedder,
            "settings": dict(self.settings),
            "cycles": [asdict(cycle) for cycle in self.cycles],
            "snapshots": {name: {"head": one.head, "lines": one.lines} for name, one in self.snapshots.items()},
        }
        parameters = zstandard.ZstdCompressionParameters.from_level(19, window_log=_WINDOW_LOG, enable_ldm=True)
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        part = file.with_suffix(".part")
        part.write_bytes(zstandard.ZstdCompressor(compression_params=parameters).compress(text.encode()))
        part.rename(file)


_ACQUIRED_AFTER_MS: Final = 1_000
"""From a cycle's beginning to the moments at which other brokers acquire its bundles: 126 to 1,370 ms in a recording
whose captures have these moments."""


def read_recording(file: Path) -> Recording:
    """The recording in a file.

    Captures of the first recordings lack the moments at which bundles were acquired: they are those of its unloads.
    """
    text = zstandard.ZstdDecompressor(max_window_size=1 << _WINDOW_LOG).decompress(file.read_bytes())
    document = json.loads(text)
    assert document["schema"] == SCHEMA, f"{file} is of schema {document['schema']}"
    recording = Recording(
        release=document["release"],
        load_manager=document["load_manager"],
        shedder=document["shedder"],
        settings=document["settings"],
        cycles=tuple(_cycle(cycle) for cycle in document["cycles"]),
        snapshots={name: RawSnapshot(**snapshot) for name, snapshot in document["snapshots"].items()},
    )
    for snapshot in recording.snapshots.values():
        _complete_acquisitions(snapshot, recording.cycles)
    return recording


def _complete_acquisitions(snapshot: RawSnapshot, cycles: Sequence[Cycle]) -> None:
    unloaded_at_ms = {
        unload.bundle: cycle.at_ms
        for cycle in cycles
        if cycle.at_ms + _ACQUIRED_AFTER_MS < snapshot.head["started_at_ms"]
        for unload in cycle.unloads
    }
    for line in snapshot.lines["owned_bundles"]:
        if line["source"] == "zookeeper" and "acquiredAt" not in line and line["bundle"] in unloaded_at_ms:
            line["acquiredAt"] = unloaded_at_ms[line["bundle"]] + _ACQUIRED_AFTER_MS


def raw_snapshot(snapshot: Snapshot) -> RawSnapshot:
    """A captured snapshot with all its lines."""
    folder = snapshot.folder("raw")
    head = json.loads(read_file(folder / MANIFEST, "capture"))
    lines: dict[str, list[dict[str, Any]]] = {}
    for file in head.pop("files"):
        content = zstandard.ZstdDecompressor().decompressobj().decompress(read_file(folder / file["path"], "capture"))
        lines[file["path"].removesuffix(_SUFFIX)] = [json.loads(line) for line in content.splitlines()]
    return RawSnapshot(lines, head)


def _cycle(document: Mapping[str, Any]) -> Cycle:
    unloads = tuple(Unload(**unload) for unload in document["unloads"])
    return Cycle(**{**document, "unloads": unloads, "said": tuple(document["said"])})
