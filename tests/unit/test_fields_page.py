"""docs/fields.md says which fields are ignored, and a capture keeps none of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import Struct

from pulsar_advisor.capture.documents import BundleData, LoadReport, LocalPolicies, Policies

PAGE = (Path(__file__).parents[2] / "docs" / "fields.md").read_text(encoding="utf-8")
DOCUMENTS = {
    "Policies of a namespace": Policies,
    "Local policies of a namespace": LocalPolicies,
    "Load report of a broker": LoadReport,
    "The leader's averages of a bundle": BundleData,
}


def rows(title: str) -> dict[str, set[str]]:
    """What becomes of fields, or why they are ignored -> the fields."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    cells: list[tuple[str, str]] = re.findall(r"^\| (.+?) \| (`.+`) \|$", section, re.MULTILINE)
    return {first: set(re.findall(r"`(\w+)`", fields)) for first, fields in cells}


@pytest.mark.parametrize(("title", "document"), DOCUMENTS.items())
def test_a_field_is_used_kept_or_ignored_and_a_capture_holds_all_but_the_ignored(
    title: str, document: type[Struct]
) -> None:
    fates = rows(title)
    kept = fates.pop("used") | fates.pop("kept", set())
    ignored = set().union(*fates.values())
    assert kept == set(document.__struct_fields__)
    assert not kept & ignored


def test_what_holds_credentials_or_roles_is_ignored() -> None:
    ignored = set().union(*rows("Policies of a namespace").values()) - set(Policies.__struct_fields__)
    assert {"auth_policies", "offload_policies"} <= ignored
