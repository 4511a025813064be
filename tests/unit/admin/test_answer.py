"""An error that a broker answers is shown in one line that can do no harm."""

from __future__ import annotations

import pytest

from pulsar_advisor.admin.answer import Answer


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"reason": "Bundle is not owned\\nat org.apache"}', "Bundle is not owned"),
        (b'{"reason": "\\u001b]0;owned\\u0007 \\u202erats"}', r"\x1b]0;owned\x07 \u202erats"),
        (b"plain \x1b[31mred", r"plain \x1b[31mred"),
        (b'{"reason": {"a": 1}}', ""),
        (b'{"a":' * 100_000, ""),
        (b"[" * 100_000, ""),
        (b'{"reason": "\xff"}', '{"reason": "\ufffd"}'),
        (b"<html>nginx</html>", ""),
        (b'"text"', ""),
        (b"", ""),
        (b"x" * 501, f"{'x' * 499}…"),
    ],
    ids=range(11),
)
def test_what_an_error_says_is_one_inert_line_whatever_its_body(body: bytes, reason: str) -> None:
    assert Answer(500, "http://broker:8080/x", body).reason == reason
