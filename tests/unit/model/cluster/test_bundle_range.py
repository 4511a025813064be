"""Ranges are read only in Pulsar's normal form, and topics fall where Pulsar's hash puts them."""

import pytest

from pulsar_advisor.model.cluster.bundle_range import (
    FULL_UPPER_BOUND,
    contains,
    format_range,
    parse_range,
    topic_hash,
)
from pulsar_advisor.model.errors import UsageError


def test_a_range_reads_back_as_it_was_written() -> None:
    assert parse_range(format_range(0x40000000, 0x80000000)) == (0x40000000, 0x80000000)


@pytest.mark.parametrize(
    "text", ["", "garbage", "0_4294967295", "0x0_0x10000000", "0X00000000_0x10000000", "0x00000000_0x10000000_junk"]
)
def test_forms_that_pulsar_accepts_but_never_writes_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a bundle range"):
        parse_range(text)


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(UsageError, match="empty"):
        parse_range("0x10000000_0x10000000")


def test_the_topic_hash_is_the_crc32_of_the_complete_name() -> None:
    # 0xcbf43926 is the check value of CRC-32 for the text "123456789".
    assert topic_hash("123456789") == 0xCBF43926


def test_only_the_last_bundle_holds_its_upper_bound() -> None:
    assert contains(0x80000000, FULL_UPPER_BOUND, FULL_UPPER_BOUND)
    assert not contains(0, 0x80000000, 0x80000000)
