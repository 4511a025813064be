"""How far the data can be trusted: the checks of a validation result, and what could not be judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.documents.validation import CheckResult, Validation
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor.planning.advice.coverage import LEAST_SHOWN
from pulsar_advisor.planning.advice.coverage import Coverage as JudgedCoverage
from pulsar_advisor.reporting.figures import count, percent

EXAMPLES_SHOWN: Final = 5
_SEVERITIES: Final = ("critical", "warning", "info")


@dataclass(frozen=True)
class Check:
    """One check. `error` says why it could not be evaluated, which differs from a failure."""

    name: str
    severity: str
    scope: str
    title: str
    reason: str
    action: str
    success: bool
    failed_rows: int
    examples: tuple[str, ...]
    excluded: tuple[str, ...]
    excluded_total: int
    error: str | None


@dataclass(frozen=True)
class Coverage:
    """The share (ratio) of the load that could be judged, and what was left out."""

    judged_ratio: float | None
    excluded_brokers: tuple[str, ...]
    excluded_namespaces: tuple[str, ...]
    excluded_bundles: int
    sentence: str
    why: str
    """The warning that too little could be judged, for display before any answer; empty if enough could."""


@dataclass(frozen=True)
class Trust:
    """The validation result, as shown on the page."""

    success: bool
    failed: tuple[Check, ...]
    not_evaluated: tuple[Check, ...]
    passed: tuple[Check, ...]
    coverage: Coverage


def trust_of(validation: Validation, recommendation: Recommendation) -> Trust:
    """Checks by severity; a check that could not be evaluated is separate from one that failed."""
    checks = sorted(
        (_check(result) for result in validation.results),
        key=lambda check: (_SEVERITIES.index(check.severity), check.name),
    )
    return Trust(
        success=validation.success,
        failed=tuple(check for check in checks if not check.success and check.error is None),
        not_evaluated=tuple(check for check in checks if check.error is not None),
        passed=tuple(check for check in checks if check.success and check.error is None),
        coverage=_coverage(recommendation.coverage),
    )


def _check(result: CheckResult) -> Check:
    return Check(
        name=result.check,
        severity=result.severity,
        scope=result.scope,
        title=result.title,
        reason=result.reason,
        action=result.action,
        success=result.success,
        failed_rows=result.failed_rows,
        examples=tuple(
            ", ".join(f"{column}={value}" for column, value in example.items())
            for example in result.examples[:EXAMPLES_SHOWN]
        ),
        excluded=tuple(result.excluded),
        excluded_total=len(result.excluded),
        error=result.error,
    )


def _coverage(judged: JudgedCoverage) -> Coverage:
    ratio, bundles = judged.judged_ratio, judged.excluded_bundles
    brokers, namespaces = judged.excluded_brokers, judged.excluded_namespaces
    left_out = [some_of(brokers)] if brokers else []
    left_out += [
        count(number, noun) for number, noun in ((len(namespaces), "namespace"), (bundles, "bundle")) if number
    ]
    if judged.sentence is not None:
        sentence = judged.sentence
    elif ratio is None:
        sentence = "The share of the load that could be judged is not known."
    elif ratio >= 1:
        sentence = "All of the load could be judged."
    else:
        sentence = (
            f"{percent(1 - ratio) if ratio < 1 - LEAST_SHOWN else 'Less than 0.1%'} of the load could not be judged."
        )
    if left_out:
        sentence += f" Left out: {'; '.join(left_out)}."
    return Coverage(ratio, brokers, namespaces, bundles, sentence, judged.why)
