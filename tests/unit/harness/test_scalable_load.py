"""Orders to the load on scalable topics, and what is read back of their segments."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import LoadDidNotStart
from harness.record_scalable import HOT, QUARTER, STREAMS
from harness.scalable_load import LAST_HASH, PROGRAM, Stream, active_segments, wait_for_segments

TOPIC = "topic://t/n/orders"


class Admin:
    """One topic with a sealed segment and its two halves."""

    def read(self, path: str) -> Any:
        assert path == "/scalable/t/n/orders"
        return {
            "segments": {
                str(number): {"segmentId": number, "hashRange": {"start": start, "end": end}, "state": state}
                for number, start, end, state in (
                    (0, 0, LAST_HASH, "SEALED"),
                    (1, 0, 0x7FFF, "ACTIVE"),
                    (2, 0x8000, LAST_HASH, "ACTIVE"),
                )
            }
        }


def test_a_stream_names_its_range_as_segments_do() -> None:
    assert Stream(TOPIC, 0, 0x3FFF, 400).arguments == (TOPIC, "0000", "3fff", "400", "200")
    assert PROGRAM.is_file()


def test_the_recorded_load_is_on_whole_segments_and_mostly_on_one() -> None:
    assert all((stream.start % QUARTER, (stream.end + 1) % QUARTER) == (0, 0) for stream in STREAMS)
    hottest = max(STREAMS, key=lambda stream: stream.messages_per_s)
    assert (hottest.topic, hottest.start) == (HOT, 0)


def test_active_segments_are_those_that_messages_are_written_to() -> None:
    assert active_segments(Admin(), TOPIC) == {1: "0000-7fff-1", 2: "8000-ffff-2"}  # type: ignore[arg-type]


def test_segments_that_stay_as_they_are_are_named_in_the_end() -> None:
    with pytest.raises(LoadDidNotStart, match=r"'0000-7fff-1', '8000-ffff-2'.* after 0 s"):
        wait_for_segments(Admin(), TOPIC, lambda now: 0 in now, 0)  # type: ignore[arg-type]
