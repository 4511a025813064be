"""docs/fields.md says of every field what becomes of it, and it is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pulsar_advisor.capture.documents import BundleData, LoadReport, LocalPolicies, Policies
from pulsar_advisor.tables.raw import SURFACES

PAGE = (Path(__file__).parents[2] / "docs" / "fields.md").read_text()
DOCUMENTS = {
    "Policies of a namespace": (Policies, "namespaces"),
    "Local policies of a namespace": (LocalPolicies, "local_policies"),
    "Load report of a broker": (LoadReport, "load_reports"),
    "The leader's averages of a bundle": (BundleData, "bundle_data"),
}


def treatments(title: str) -> dict[str, str]:
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    rows: list[tuple[str, str]] = re.findall(r"^\| `(\w+)` +\| (\w+) +\|", section, re.MULTILINE)
    return dict(rows)


@pytest.mark.parametrize("title", DOCUMENTS)
def test_a_capture_keeps_every_field_but_those_that_are_ignored(title: str) -> None:
    document, _ = DOCUMENTS[title]
    kept = {field for field, treatment in treatments(title).items() if treatment != "ignored"}
    assert kept == set(document.__struct_fields__)


@pytest.mark.parametrize("title", DOCUMENTS)
def test_the_tables_read_what_is_used_or_checked_and_nothing_else(title: str) -> None:
    _, surface = DOCUMENTS[title]
    read = {
        field
        for field, treatment in treatments(title).items()
        if re.search(rf"(^|[ <]){field}:", SURFACES[surface].schema.partition("document")[2])
    }
    assert {field for field, treatment in treatments(title).items() if treatment in ("used", "checked")} <= read
    assert not {field for field, treatment in treatments(title).items() if treatment == "ignored"} & read


def test_every_field_has_one_of_four_fates() -> None:
    assert {treatment for title in DOCUMENTS for treatment in treatments(title).values()} == {
        "used",
        "checked",
        "kept",
        "ignored",
    }
