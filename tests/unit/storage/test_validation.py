"""Results of `validate` that an earlier release wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

import documents
from pulsar_advisor.storage.files import write_json
from pulsar_advisor.storage.root import RESULT, Root
from pulsar_advisor.storage.validation import read_validation

SNAPSHOT = "20261121T083000Z"


@pytest.mark.parametrize(
    ("severity", "scope", "effect"),
    [
        ("critical", "cluster", "stop"),
        ("warning", "cluster", "doubt"),
        ("warning", "broker", "confine"),
        ("info", "broker", "doubt"),
    ],
)
def test_warnings_of_version_1_confine_what_they_name(tmp_path: Path, severity: str, scope: str, effect: str) -> None:
    root = Root(str(tmp_path), "test")
    check = documents.check(severity=severity, scope=scope)
    for added in ("effect", "about", "concerned"):
        del check[added]
    first = documents.validation(check, schema="pulsar-advisor/validation-result/1")
    write_json(root.folder("validation", SNAPSHOT) / RESULT, first)
    [result] = read_validation(root, SNAPSHOT)["results"]
    assert (result["effect"], result["about"], result["concerned"]) == (effect, None, None)
