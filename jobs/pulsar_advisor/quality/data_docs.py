"""A validation result as Data Docs: one static page per suite, made by Great Expectations' own renderer."""

from __future__ import annotations

import re
from html import escape
from importlib import resources
from typing import Any, Final

from pulsar_advisor.documents.validation import CheckResult, Validation
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.quality.checks import Check, Expectation, checks_of, suites

_ONLINE: Final = re.compile(
    r"""<script.*?</script>|<footer.*?</footer>|<(?:link|img)\s[^>]*(?:href|src)="[^>]*>|\sonclick="[^"]*\""""
    r"""|url\('https?://[^']*'\)|\shref="\.\./[^"]*\"""",
    re.DOTALL,
)
"""What is removed: styles, scripts and images from public servers, elements that need these scripts, and links to pages
that don't exist. `data_docs_custom_styles.css`, a name that Great Expectations looks for, replaces the styles.
"""


def data_docs_page(result: Validation, table: str) -> str:
    """The page of one suite as HTML that fetches nothing."""
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.render.renderer import ValidationResultsPageRenderer
    from great_expectations.render.view import DefaultJinjaPageView

    from pulsar_advisor.quality.library import gx

    outcomes = {one.check: one for one in result.results}
    mine = [
        _as_great_expectations(check, expectation, outcomes[check.name])
        for check, expectation in zip(checks_of(table), suites()[table], strict=True)
        if check.name in outcomes
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
            meta={
                # The renderer escapes neither of these everywhere, and others may have written them into the root.
                "batch_spec": {"data_asset_name": escape(result.cluster)},
                "run_id": escape(result.snapshot),
                "great_expectations_version": gx.__version__,
            },
        )
    )
    styles = str(resources.files("pulsar_advisor.quality"))
    return _ONLINE.sub("", DefaultJinjaPageView(custom_styles_directory=styles).render(document))


def _as_great_expectations(check: Check, expectation: Expectation, outcome: CheckResult) -> Any:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    return ExpectationValidationResult(
        success=outcome.success,
        expectation_config=ExpectationConfiguration(
            type=expectation["type"], kwargs=dict(expectation["kwargs"]), description=f"{check.title} ({check.name})"
        ),
        result={"observed_value": "not evaluated" if outcome.error else count(outcome.failed_rows, "failed row")},
        exception_info={
            "raised_exception": outcome.error is not None,
            "exception_message": outcome.error or "",
            "exception_traceback": "",
        },
    )
