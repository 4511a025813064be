"""Fields of a connection's form: what was left empty is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def filled(value: Any) -> bool:
    """Whether a field was filled in; a ticked or unticked box was."""
    return value is not None and value != ""


def plain_fields(extra: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Those of the named fields that were filled in."""
    return {name: extra[name] for name in names if filled(extra.get(name))}
