"""A file of a snapshot is one frame of JSON lines, and damage shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zstandard
from upath import UPath

from pulsar_advisor.capture.raw_files import RawFile, SnapshotFiles, read_lines
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.storage.files import write_file


def test_lines_added_in_parts_are_one_frame() -> None:
    file = RawFile()
    file.extend([{"a": 1}])
    file.extend([{"a": 2}, {"a": "ü"}])
    content, rows = file.finish()
    frame = zstandard.ZstdDecompressor().decompressobj()
    frame.decompress(content)
    assert frame.unused_data == b""
    assert (list(read_lines(content)), rows) == ([b'{"a":1}', b'{"a":2}', '{"a":"ü"}'.encode()], 3)


def test_a_file_without_lines_can_be_read() -> None:
    file = RawFile()
    file.extend([])
    assert list(read_lines(file.finish().content)) == []


def test_a_changed_byte_shows() -> None:
    file = RawFile()
    file.extend([{"number": number} for number in range(100)])
    content = bytearray(file.finish().content)
    content[len(content) // 2] ^= 0xFF
    with pytest.raises(zstandard.ZstdError):
        list(read_lines(bytes(content)))


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_file_that_is_cut_short_shows(kept: float) -> None:
    file = RawFile()
    file.extend([{"number": number} for number in range(10_000)])
    content = file.finish().content
    with pytest.raises(zstandard.ZstdError):
        list(read_lines(content[: int(kept * len(content))]))


def test_a_line_break_inside_a_text_does_not_end_the_line() -> None:
    file = RawFile()
    file.extend([{"text": "a\nb\u2028c"}])
    assert len(list(read_lines(file.finish().content))) == 1


def test_a_surface_asked_and_answered_with_nothing_has_a_file(tmp_path: object) -> None:
    files = SnapshotFiles(lambda path, content: write_file(UPath(str(tmp_path)) / path, content))
    files.extend("failure_domains", [])
    files.write_surfaces()
    (entry,) = files.listing()
    assert (entry.path, entry.rows) == ("failure_domains.jsonl.zst", 0)


def test_a_surface_that_can_not_be_read_has_no_file(tmp_path: object) -> None:
    def lines() -> Iterator[dict[str, str]]:
        yield {"domain": "rack-1"}
        raise ClusterUnreachable("the session is lost")

    files = SnapshotFiles(lambda path, content: write_file(UPath(str(tmp_path)) / path, content))
    with pytest.raises(ClusterUnreachable):
        files.extend("failure_domains", lines())
    files.write_surfaces()
    assert files.listing() == ()
