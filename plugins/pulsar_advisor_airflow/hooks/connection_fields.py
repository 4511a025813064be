"""Fields of a connection's form: what was left empty is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


def filled(value: object) -> bool:
    """Whether a field was filled in; a ticked or unticked box was."""
    return value is not None and value != ""


def plain_fields(extra: Mapping[str, T], names: Iterable[str]) -> dict[str, T]:
    """Those of the named fields that were filled in."""
    return {name: extra[name] for name in names if filled(extra.get(name))}
