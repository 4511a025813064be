"""A recording is read back as it was written, and its snapshots are the captured ones."""

from __future__ import annotations

import json
from pathlib import Path

from decisions.recording import Cycle, Recording, Unload, raw_snapshot, read_recording
from pulsar_advisor.storage.root import MANIFEST, Root
from snapshots import skewed_modular_cluster


def test_a_recording_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    snapshot = skewed_modular_cluster(topics=20)
    unload = Unload("shop/orders/0x00000000_0x20000000", "a:1", None)
    cycles = (Cycle(1, "20261121T083000Z", None, (), ()), Cycle(2, "20261121T083000Z", "x", (unload,), ("said",)))
    recording = Recording("4.0.8", "modular", "ThresholdShedder", {"key": "1"}, cycles, {"20261121T083000Z": snapshot})
    recording.write(tmp_path / "one.json.zst")
    read = read_recording(tmp_path / "one.json.zst")
    assert read == recording
    assert read.decisions == [cycles[1]]


def test_a_captured_snapshot_is_kept_with_every_line_and_written_again_as_it_was(tmp_path: Path) -> None:
    captured, again = Root(str(tmp_path), "captured"), Root(str(tmp_path), "again")
    snapshot = skewed_modular_cluster(topics=20).write(captured)
    read = raw_snapshot(snapshot)
    written = read.write(again)
    assert written.id == snapshot.id
    manifests = [json.loads((one.folder("raw") / MANIFEST).read_bytes()) for one in (snapshot, written)]
    assert manifests[0].pop("cluster") == "captured"
    assert manifests[1].pop("cluster") == "again"
    assert manifests[0] == manifests[1]
