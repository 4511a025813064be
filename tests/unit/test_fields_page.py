"""docs/fields.md says which fields are ignored, and a capture keeps none of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec import Struct

from pulsar_advisor.capture.documents import BundleData, LoadReport, LocalPolicies, Policies
from unit.admin.mutated import answers, nodes

PAGE = (Path(__file__).parents[2] / "docs" / "fields.md").read_text(encoding="utf-8")
DOCUMENTS = {
    "Policies of a namespace": Policies,
    "Local policies of a namespace": LocalPolicies,
    "Load report of a broker": LoadReport,
    "The leader's averages of a bundle": BundleData,
}
RECORDED = {
    "Policies of a namespace": answers("/namespaces/shy/data"),
    "Local policies of a namespace": nodes("/admin/local-policies/"),
    "Load report of a broker": answers("/broker-stats/load-report"),
    "The leader's averages of a bundle": nodes("/loadbalance/bundle-data/"),
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


@pytest.mark.parametrize(("title", "documents"), RECORDED.items())
def test_every_field_that_brokers_sent_is_named(title: str, documents: tuple[bytes, ...]) -> None:
    sent: set[str] = set().union(*map(json.loads, documents))
    assert sent
    assert sent <= set().union(*rows(title).values())


def test_what_holds_credentials_or_roles_is_ignored() -> None:
    ignored = set().union(*rows("Policies of a namespace").values()) - set(Policies.__struct_fields__)
    assert {"auth_policies", "offload_policies"} <= ignored
