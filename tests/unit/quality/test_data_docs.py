import re
from pathlib import Path
from typing import Any

import pytest

from pulsar_advisor.quality.checks import checks, suites
from pulsar_advisor.quality.data_docs import write_data_docs


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages of a result in which one check failed and one could not be evaluated."""
    folder = tmp_path_factory.mktemp("docs")
    results: list[dict[str, Any]] = [
        {"check": check.name, "success": True, "failed_rows": 0, "error": None} for check in checks()
    ]
    by_name = {one["check"]: one for one in results}
    by_name["bundles.unique"] |= {"success": False, "failed_rows": 17}
    by_name["bundles.steady"] |= {"success": False, "error": "no such column: steadiness"}
    write_data_docs({"cluster": "test", "snapshot": "20261121T080000Z", "results": results}, folder)
    return {path.stem: path.read_text() for path in Path(folder).glob("*.html")}


def test_every_suite_has_a_page(pages: dict[str, str]) -> None:
    assert pages.keys() == suites().keys()


def test_a_page_tells_failed_from_could_not_be_evaluated(pages: dict[str, str]) -> None:
    assert pages["bundles"].count("17 rows failed") == 1
    assert "no such column: steadiness" in pages["bundles"]
    assert "rows failed" in pages["topics"]
    assert "no such column" not in pages["topics"]


def test_a_page_fetches_nothing(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert re.findall(r"<(?:script|img|link|iframe)[^>]*(?:src|href)=", page) == []
        assert re.findall(r"url\(", page) == []
        assert all(
            link.startswith(("#", "https://greatexpectations.io")) for link in re.findall(r'href="([^"]*)"', page)
        )
