"""Whatever a document holds, a decoder gives what it promises or says that it can't: with where it came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.targets import TARGETS, WHERE, of_the_client, of_the_executor
from pulsar_advisor.admin.answer import Answer
from pulsar_advisor.admin.decoding import UnreadableAnswer
from pulsar_advisor.capture.raw_files import RawFile
from pulsar_advisor.model.errors import ClusterUnreachable
from unit.admin.mutated import answers, mutated

CAPTURED = tuple(TARGETS)[: list(TARGETS).index("reads of a capture")]
"""Decoders of what brokers and ZooKeeper hold, of which a capture keeps lines."""


@pytest.mark.parametrize("name", CAPTURED)
@given(data=st.data())
def test_a_decoder_gives_lines_or_says_that_it_can_not(name: str, data: st.DataObject) -> None:
    target = TARGETS[name]
    body = data.draw(mutated(target.seeds))
    try:
        found = target.decode(body)
    except UnreadableAnswer as error:
        assert str(error).startswith(f"{WHERE}: can't decode the response of {len(body)} bytes: ")
        return
    RawFile().extend([{"document": found}] if name != "topics" else [])


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("topics", b'{"a/b":{"0x00000000_0xffffffff":{"persistent":{"persistent://a/b/\xff":{}}}}}'),
        ("topics", b'{"a/b":{"0x00000000_0xffffffff":{"persistent":{"persistent://a/b/c":' + b'{"x":' * 100_000),
        ("ownership", b'{"httpUrl":"http://[bad"}'),
        ("ownership", b'{"httpUrl":"http://a:8080@evil:80"}'),
        ("leader", b'{"serviceUrl":"http://[bad"}'),
        ("load report", b'{"x":' + b"[" * 100_000),
    ],
)
def test_what_ended_a_capture_once_can_not_be_read(name: str, body: bytes) -> None:
    with pytest.raises(UnreadableAnswer, match=f"^{WHERE}: can't decode"):
        TARGETS[name].decode(body)


@given(body=mutated(answers("")))
def test_every_read_gives_an_answer_or_one_of_our_errors_that_names_the_place(body: bytes) -> None:
    for read in (*of_the_client(body), *of_the_executor(body)):
        try:
            read()
        except ClusterUnreachable as error:
            assert "127.0.0.1:8080/" in str(error) or "the brokers run load manager" in str(error)


@given(body=mutated(answers("")), status=st.sampled_from((400, 409, 412, 429, 500, 503)))
def test_every_error_answer_has_a_reason_of_one_inert_line(body: bytes, status: int) -> None:
    assert Answer(status, WHERE, body).reason.isprintable()
