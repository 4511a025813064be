"""Releases of Pulsar: their numbers and their order."""

from __future__ import annotations

import math
import re
from typing import Final

from pulsar_advisor.model.errors import DataNotFit

INTERNAL_LISTENER_SINCE: Final = (5, 0, 0)
"""Brokers look topics up by the listener `internal`, which all of them have (apache/pulsar#25851)."""

_RELEASE = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?", re.ASCII)
_MILESTONE = re.compile(r"-M(\d{1,9})", re.ASCII)


def release_number(text: str | None) -> tuple[int, int, int]:
    """The three numbers of a release, to compare it; a milestone counts as its release. Raises `DataNotFit`."""
    if text is None:
        raise DataNotFit(
            "no broker says which release of Pulsar it runs, so its defaults are unknown: see `doctor`, then "
            "capture again"
        )
    match = _RELEASE.match(text)
    if match is None:
        raise DataNotFit(
            f"'{text}' is not a Pulsar version; expected a release such as 4.0.8. Is the capture of a Pulsar cluster?"
        )
    return int(match[1]), int(match[2]), int(match[3] or 0)


def is_later(pulsar_version: str | None, than: str | None) -> bool:
    """Whether one release comes after another; a milestone comes before its release.

    Raises `DataNotFit` for a text that isn't a release.
    """
    return _place(pulsar_version) > _place(than)


def _place(text: str | None) -> tuple[tuple[int, int, int], float]:
    number = release_number(text)
    milestone = _MILESTONE.search(str(text))
    return number, math.inf if milestone is None else int(milestone[1])


def line_of(text: str) -> tuple[int, ...]:
    """The first two numbers of a release; all three of a milestone, which comes before the releases of its line.

    Raises `DataNotFit` for a text that isn't a release.
    """
    return release_number(text)[: 2 if _MILESTONE.search(text) is None else 3]
