"""A validation result as Data Docs: one static page a suite, by Great Expectations' own renderer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from upath import UPath

from pulsar_advisor.quality.checks import checks, suites
from pulsar_advisor.storage import write_file

_FETCHED: Final = re.compile(
    r"""<script[^>]*\ssrc="[^>]*>\s*</script>|<(?:link|img)\s[^>]*(?:href|src)="[^>]*>|url\('https?://[^']*'\)"""
    r"""|\shref="\.\./[^"]*\""""
)
"""What a browser would fetch from public servers, styles, scripts and pictures, and links to pages that aren't made."""


def write_data_docs(result: Mapping[str, Any], folder: Path) -> None:
    """Write a page for each suite of a validation result, `<table>.html`."""
    for table in suites():
        write_file(UPath(folder / f"{table}.html"), data_docs_page(result, table).encode())


def data_docs_page(result: Mapping[str, Any], table: str) -> str:
    """The page of one suite as HTML that fetches nothing."""
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.render.renderer import ValidationResultsPageRenderer
    from great_expectations.render.view import DefaultJinjaPageView

    outcomes = {one["check"]: one for one in result["results"]}
    names = [check.name for check in checks() if check.table == table]
    mine = [
        _as_great_expectations(expectation, outcomes[name])
        for name, expectation in zip(names, suites()[table]["expectations"], strict=True)
        if name in outcomes
    ]
    passed = sum(bool(one.success) for one in mine)
    document = ValidationResultsPageRenderer(run_info_at_end=True).render(
        ExpectationSuiteValidationResult(
            success=passed == len(mine),
            results=mine,
            suite_name=table,
            statistics={
                "evaluated_expectations": len(mine),
                "successful_expectations": passed,
                "unsuccessful_expectations": len(mine) - passed,
                "success_percent": 100 * passed / len(mine) if mine else None,
            },
            meta={"active_batch_definition": {"data_asset_name": f"{result['cluster']} {result['snapshot']} {table}"}},
        )
    )
    return _FETCHED.sub("", DefaultJinjaPageView().render(document))


def _as_great_expectations(expectation: Mapping[str, Any], outcome: Mapping[str, Any]) -> Any:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    return ExpectationValidationResult(
        success=outcome["success"],
        expectation_config=ExpectationConfiguration(type=expectation["type"], kwargs=dict(expectation["kwargs"])),
        result={"observed_value": f"{outcome['failed_rows']} rows failed"},
        exception_info={
            "raised_exception": outcome["error"] is not None,
            "exception_message": outcome["error"] or "",
            "exception_traceback": "",
        },
    )
