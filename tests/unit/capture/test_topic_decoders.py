"""Topic documents become files of the snapshot in other processes, and one that can't costs nothing but itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from select import select

import psutil
import pytest

from pulsar_advisor.admin.decoding import Document, UnreadableAnswer
from pulsar_advisor.capture.raw_files import read_lines
from pulsar_advisor.capture.topic_decoders import SMALL_BYTES, TopicDecoders, topic_file
from unit.capture.fake_cluster import SECRET, TOPIC_STATS

URL = "http://b1:8080/admin/v2/broker-stats/topics"
TOPICS = 5000


def large_document() -> Document:
    topics = {f"persistent://retail/orders/t{number}": TOPIC_STATS for number in range(TOPICS)}
    body = json.dumps({"retail/orders": {"0x00000000_0xffffffff": {"persistent": topics}}}).encode()
    assert len(body) > SMALL_BYTES
    return Document(URL, body)


@pytest.fixture
def decoders() -> Iterator[TopicDecoders]:
    with TopicDecoders() as decoders:
        yield decoders


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def test_another_process_makes_the_same_file(decoders: TopicDecoders) -> None:
    made_here = topic_file("b1:8080", large_document())
    assert decoders.topic_file("b1:8080", large_document()) == made_here
    assert made_here.file.rows == TOPICS
    assert SECRET.encode() not in b"".join(read_lines(made_here.file.content))


def test_a_module_in_the_current_folder_is_not_run(
    decoders: TopicDecoders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert decoders.topic_file("b1:8080", large_document()).file.rows == TOPICS


def test_a_small_document_needs_no_process(decoders: TopicDecoders) -> None:
    before = children()
    small = Document(URL, b'{"retail/orders": {"0x00000000_0xffffffff": {"persistent": {"t": {}}}}}')
    assert decoders.topic_file("b1:8080", small).file.rows == 1
    assert children() <= before


def test_a_document_cut_short_is_unreadable_and_the_next_is_decoded(decoders: TopicDecoders) -> None:
    document = large_document()
    with pytest.raises(UnreadableAnswer) as error:
        decoders.topic_file("b1:8080", Document(URL, document.body[:-1]))
    assert str(error.value).startswith(URL)
    assert error.value.size == len(document.body) - 1
    assert decoders.topic_file("b1:8080", document).file.rows == TOPICS


def test_a_process_that_dies_costs_one_document(decoders: TopicDecoders) -> None:
    before = children()
    decoders.topic_file("b1:8080", large_document())
    (decoder,) = children() - before
    os.kill(decoder, signal.SIGKILL)
    with pytest.raises(UnreadableAnswer, match="ended with -9"):
        decoders.topic_file("b1:8080", large_document())
    assert decoders.topic_file("b1:8080", large_document()).file.rows == TOPICS


def test_no_process_is_left() -> None:
    before = children()
    with TopicDecoders() as decoders:
        decoders.topic_file("b1:8080", large_document())
        assert children() - before
    assert children() <= before


def test_processes_end_when_the_capture_is_killed() -> None:
    script = (
        "import sys, time; from unit.capture.test_topic_decoders import *\n"
        "decoders = TopicDecoders(); before = children()\n"
        "decoders.topic_file('b1:8080', large_document())\n"
        "print(*(children() - before), flush=True); time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as capture:
        assert capture.stdout is not None
        decoder = os.pidfd_open(int(capture.stdout.readline()))
        capture.kill()
    assert select([decoder], [], [], 60)[0], "it has not ended"
    os.close(decoder)
