"""Canonical JSON (RFC 8785): exactly one text for each value, from which digests are computed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, Final

import rfc8785
from pydantic import JsonValue

Json = dict[str, JsonValue]
"""A JSON object."""

_CONSTANTS: Final = {None: "null", True: "true", False: "false"}
_GREATEST_INTEGER: Final = 2**53 - 1
_FLOATS_LIKE_PYTHON: Final = (1e-4, 1e16)
"""Between these, Python and RFC 8785 write a float with the same digits, neither with an exponent."""

CanonicalizationError = rfc8785.CanonicalizationError
"""A value has no canonical form: a number beyond what JSON's readers agree on, or text that is not Unicode."""


def canonical_json(value: Any) -> bytes:
    """The canonical form of a JSON value. Raises `CanonicalizationError` if it has none.

    Text, most of a large plan, goes through Python's own encoder, which escapes as RFC 8785 demands.
    """
    try:
        return _text(value).encode()
    except UnicodeEncodeError as error:
        raise CanonicalizationError(f"it holds text that is not Unicode: {error}") from error
    except RecursionError as error:
        raise CanonicalizationError("it is nested too deeply") from error


def members(document: Mapping[str, JsonValue]) -> dict[str, bytes]:
    """Name -> the canonical form of one member of an object, its name included."""
    return {name: canonical_json(name) + b":" + canonical_json(value) for name, value in document.items()}


def joined(members: Mapping[str, bytes]) -> bytes:
    """The canonical form of the object with these members."""
    return b"{" + b",".join(members[name] for name in sorted(members, key=_utf16)) + b"}"


def _text(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is dict:
        return "{" + ",".join([before + _text(value[name]) for name, before in _names(tuple(value))]) + "}"
    if kind is list:
        return _plain_texts(value) or "[" + ",".join(map(_text, value)) + "]"
    if kind is float and _FLOATS_LIKE_PYTHON[0] <= abs(value) < _FLOATS_LIKE_PYTHON[1]:
        return repr(value).removesuffix(".0")
    if kind is int and abs(value) <= _GREATEST_INTEGER:
        return str(value)
    if kind is bool or value is None:
        return _CONSTANTS[value]
    return rfc8785.dumps(value).decode()


def _plain_texts(values: list[Any]) -> str | None:
    """The canonical form of a list of texts that need no escaping; None for any other list."""
    try:
        inside = '","'.join(values)
    except TypeError:
        return None
    is_plain = inside.isascii() and inside.isprintable() and "\\" not in inside
    return f'["{inside}"]' if is_plain and inside.count('"') == 2 * (len(values) - 1) else None


@lru_cache(1024)
def _names(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """An object's names in canonical order, each with the text that its member begins with."""
    return tuple((name, f"{encode_basestring(name)}:") for name in sorted(names, key=_utf16))


def _utf16(name: str) -> bytes:
    return name.encode("utf-16be")
