import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import documents
from pulsar_advisor.quality.checks import checks, suites
from pulsar_advisor.stages.validate import write_data_docs


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages of a result in which one check failed and one could not be evaluated."""
    folder = tmp_path_factory.mktemp("docs")
    wrong: dict[str, dict[str, Any]] = {
        "bundles.unique": {"success": False, "failed_rows": 17},
        "bundles.steady": {"success": False, "error": "no such column: steadiness"},
    }
    results = [documents.check(check=check.name, **wrong.get(check.name, {})) for check in checks()]
    write_data_docs(documents.validation(*results, snapshot="20261121T080000Z"), folder)
    return {path.stem: path.read_text() for path in Path(folder).glob("*.html")}


@pytest.mark.slow
def test_every_suite_has_a_page(pages: dict[str, str]) -> None:
    assert pages.keys() == suites().keys()


def test_a_page_distinguishes_failed_from_not_evaluated(pages: dict[str, str]) -> None:
    assert pages["bundles"].count("17 failed rows") == 1
    assert "no such column: steadiness" in pages["bundles"]
    assert "failed rows" in pages["topics"]
    assert "no such column" not in pages["topics"]


def test_a_page_says_what_each_check_says(pages: dict[str, str]) -> None:
    assert all(f"({check.name})" in pages[check.table] for check in checks())
    assert "Every bundle appears exactly once. (bundles.unique)" in pages["bundles"]


def test_a_page_names_its_cluster_and_snapshot(pages: dict[str, str]) -> None:
    assert all("Data asset: test" in page and "20261121T080000Z" in page for page in pages.values())


def test_a_page_names_no_server_and_needs_no_script(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert re.findall(r"https?:|//[a-z]|url\(|@import", page) == []
        assert re.findall(r"<(?:script|img|link|iframe)\b|\son\w+=", page) == []
        assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', page))


def test_a_page_brings_its_own_styles(pages: dict[str, str]) -> None:
    styles = (resources.files("pulsar_advisor.quality") / "data_docs_custom_styles.css").read_text()
    assert all(f"<style>{styles.rstrip()}</style>" in page for page in pages.values())


def test_what_others_wrote_into_a_result_is_text(tmp_path: Path) -> None:
    markup = "<img src=x onerror=alert(1)>"
    result = documents.validation(documents.check(check="bundles.unique", success=False, error=markup))
    write_data_docs(result.model_copy(update={"cluster": markup, "snapshot": markup}), tmp_path)
    page = (tmp_path / "bundles.html").read_text()
    assert ("<img" in page, "onerror=alert(1)" in page) == (False, True)
