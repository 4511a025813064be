"""Pulsar's own Java store (5.0.0-M1) judges our double of Oxia: it reads the same records from it as we do."""

from __future__ import annotations

import base64
import json
import subprocess

import pytest

from harness.errors import LiveClusterUnavailable
from parity.java_classes import SOURCES, START_FAST, java_command, java_environment
from pulsar_advisor.admin.oxia import OxiaConnection
from unit.admin.fake_oxia import NAMESPACE, FakeOxia, served
from unit.capture.recorded_store import RecordedStore
from unit.capture.test_capture_of_oxia import the_same_records

RELEASE = "5.0.0-M1"
ANSWER_LIMIT_S = 120


def of_java(oxia: FakeOxia) -> dict[str, tuple[list[str], bytes, int, int]]:
    """By path: its children, its value, and when it was made and last written."""
    sources = [SOURCES / "store" / "ReadStore.java"]
    lines = [f"{path}\t{one.partition_key}" if one.partition_key else path for path, one in oxia.records.items()]
    try:
        command = java_command("ReadStore", RELEASE, sources, START_FAST)
    except LiveClusterUnavailable as reason:
        pytest.skip(str(reason))
    answered = subprocess.run(
        [*command, f"oxia://{oxia.address}/{NAMESPACE}"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=ANSWER_LIMIT_S,
        env=java_environment(),
        check=False,
    )
    assert answered.returncode == 0, answered.stderr
    answers = [json.loads(line) for line in answered.stdout.splitlines()]
    return {
        one["path"]: (one["children"], base64.b64decode(one["value"]), one["created"], one["modified"])
        for one in answers
    }


@pytest.mark.full
@pytest.mark.parametrize("load_manager", ["modular", "extensible"])
def test_pulsars_java_store_reads_the_same_as_ours(load_manager: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(the_same_records(RecordedStore(load_manager, monkeypatch))) as oxia:
        java = of_java(oxia)
        connection = OxiaConnection(url=f"oxia://{oxia.address}/{NAMESPACE}")
        with connection.session() as store:
            children = dict(store.children(oxia.records))
            ours = {
                node.path: (children[node.path], node.data, node.created_at_ms, node.modified_at_ms)
                for node in store.nodes(oxia.records)
            }
    assert ours == java
    assert ours.keys() == oxia.records.keys()
