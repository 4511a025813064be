"""Nothing that comes from elsewhere acts on a screen."""

from __future__ import annotations

import pytest

from pulsar_advisor.model.text.plain_text import plain


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("täglich/ünï", "täglich/ünï"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb", "a\\nb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\ud800b", "a\\ud800b"),
        ("a\u3164b", "a\\u3164b"),
        ("a\u034fb", "a\\u034fb"),
        ("a\x9b2Jb", "a\\x9b2Jb"),
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("1\u00a0bundle", "1\u00a0bundle"),
    ],
)
def test_what_is_not_printable_is_written_out(name: str, shown: str) -> None:
    assert plain(name) == shown


def test_what_is_to_be_kept_is_kept() -> None:
    assert plain("a\n\x9bb", keep="\n") == "a\n\\x9bb"
