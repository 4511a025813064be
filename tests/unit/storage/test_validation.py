"""Results of `validate`, as this release and an earlier one write them."""

from __future__ import annotations

import json

import pytest

import documents
from pulsar_advisor.documents.validation import Validation


@pytest.mark.parametrize(
    ("severity", "scope", "effect"),
    [
        ("critical", "cluster", "stop"),
        ("warning", "cluster", "doubt"),
        ("warning", "broker", "confine"),
        ("info", "broker", "doubt"),
    ],
)
def test_warnings_of_version_1_confine_what_they_name(severity: str, scope: str, effect: str) -> None:
    first = json.loads(documents.validation(documents.check(severity=severity, scope=scope)).content())
    first["schema"] = "pulsar-advisor/validation-result/1"
    for added in ("effect", "about", "concerned"):
        del first["results"][0][added]
    [result] = Validation.parsed(json.dumps(first).encode(), "result.json").results
    assert (result.effect, result.about, result.concerned) == (effect, None, None)


def test_an_example_may_hold_a_list() -> None:
    example = {"name": "apart", "unusable": ["retail/("]}
    written = documents.validation(documents.check(examples=[example]))
    assert Validation.parsed(written.content(), "result.json").results[0].examples == (example,)
