"""Reads a response body within limits on size and time, whatever its headers promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import requests

from pulsar_advisor.admin.time_limit import ended_after
from pulsar_advisor.model.errors import ClusterUnreachable

_CHUNK_BYTES: Final = 1 << 16


class TooLarge(ClusterUnreachable):
    """A response larger than any legitimate one of its kind; it was not read to the end, so its content is unknown."""


def read_body(
    response: requests.Response,
    address: str,
    limit_bytes: int,
    within_s: float,
    arrive: Callable[[int], None] | None = None,
) -> bytearray:
    """The whole body, decompressed, however steadily it trickles in; `arrive` gets the size of each piece.

    Raises `TooLarge` and requests' errors.
    """
    body = bytearray()
    # A piece may take any time, too: only silence has a limit within it.
    with ended_after(within_s, response.raw.shutdown) as is_late:
        try:
            for chunk in response.iter_content(_CHUNK_BYTES):
                body += chunk
                if len(body) > limit_bytes:
                    raise TooLarge(
                        f"{address}: the answer ({response.status_code}) is larger than {limit_bytes:,} bytes: not "
                        "read to its end; is this a broker?"
                    )
                if arrive is not None:
                    arrive(len(chunk))
                if is_late.is_set():
                    break
        except Exception:
            if not is_late.is_set():
                raise
    if is_late.is_set():
        raise requests.ReadTimeout(f"document incomplete after {within_s:.0f} s", response=response)
    return body
