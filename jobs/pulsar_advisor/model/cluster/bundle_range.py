"""Bundle ranges and the topic hash: which part of the hash ring a bundle covers, and which topic falls into it.

Source: Pulsar `NamespaceBundles`, `NamespaceBundleFactory`, `ConsistentHashingTopicBundleAssigner` (2.11 to 5.0).
"""

from __future__ import annotations

import re
import zlib
from typing import Final

from pulsar_advisor.model.errors import UsageError

FULL_UPPER_BOUND: Final = 0xFFFFFFFF
"""Upper bound of the last bundle of a namespace; the only upper bound that is itself part of its bundle."""

_RANGE = re.compile(r"0x([0-9a-f]{8})_0x([0-9a-f]{8})")


def topic_hash(topic: str) -> int:
    """Position of a topic on the ring: unsigned CRC-32 of the UTF-8 bytes of its complete name.

    `topic` is the complete name, `<domain>://<tenant>/<namespace>/<local name>`, local name decoded.
    """
    return zlib.crc32(topic.encode())


def format_range(lower: int, upper: int) -> str:
    """Pulsar's text for the range [lower, upper): lower-case, eight digits per bound."""
    return f"0x{lower:08x}_0x{upper:08x}"


def parse_range(text: str) -> tuple[int, int]:
    """Bounds of a range in the normal form `0x%08x_0x%08x`.

    Raises `UsageError` for any other text. Pulsar's REST path accepts more (octal, decimal, garbage at the end).
    Up to 4.2 the key of a transfer is the raw text, so only the normal form is safe.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not a bundle range; expected the form 0x00000000_0x80000000")
    lower, upper = int(match[1], 16), int(match[2], 16)
    if lower >= upper:
        raise UsageError(f"bundle range '{text}' is empty: its lower bound is not below its upper bound")
    return lower, upper


def contains(lower: int, upper: int, position: int) -> bool:
    """Whether a hash falls in the bundle: lower bound inclusive, upper bound exclusive except for the last bundle."""
    return lower <= position and (position < upper or position == upper == FULL_UPPER_BOUND)
