"""The forms of a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.reporting.forms import FORMS

PAGE = Path(__file__).parents[3] / "docs" / "report.md"


@pytest.mark.parametrize("form", FORMS)
def test_the_page_about_reports_names_it(form: str) -> None:
    assert f"`{form}`" in PAGE.read_text(encoding="utf-8")
