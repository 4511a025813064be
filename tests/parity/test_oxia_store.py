"""Pulsar's own Java store (5.0.1) judges our double of Oxia: it reads the same records from it as we do."""

from __future__ import annotations

import pytest

from harness.errors import LiveClusterUnavailable
from parity.java_store import Read, read_by_java
from pulsar_advisor.admin.oxia import OxiaConnection
from unit.admin.fake_oxia import NAMESPACE, served
from unit.capture.recorded_store import RecordedStore
from unit.capture.test_capture_of_oxia import the_same_records


@pytest.mark.full
@pytest.mark.parametrize("load_manager", ["modular", "extensible"])
def test_pulsars_java_store_reads_the_same_as_ours(load_manager: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(the_same_records(RecordedStore(load_manager, monkeypatch))) as oxia:
        url = f"oxia://{oxia.address}/{NAMESPACE}"
        keys = {path: one.partition_key for path, one in oxia.records.items() if one.partition_key}
        try:
            java = read_by_java(url, oxia.records, keys)
        except LiveClusterUnavailable as reason:
            pytest.skip(str(reason))
        with OxiaConnection(url=url).session() as store:
            children = dict(store.children(oxia.records))
            ours = {
                node.path: Read(children[node.path], node.data, node.created_at_ms, node.modified_at_ms)
                for node in store.nodes(oxia.records)
            }
    assert ours == java
    assert ours.keys() == oxia.records.keys()
