"""Applies every rule to a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulsar_advisor.lint.registry import RULES
from pulsar_advisor.lint.rule import Case, Rule, Severity, Violation


@dataclass(frozen=True)
class LintFinding:
    """How a cluster violates a rule: fields of `Rule` and `Violation`."""

    rule: str
    severity: Severity
    sentence: str
    title: str
    why: str
    remedy: str
    change: Mapping[str, str]
    source: str

    @classmethod
    def of(cls, rule: Rule, violation: Violation) -> LintFinding:
        """The finding of one rule."""
        return cls(
            rule=rule.name,
            severity=rule.severity,
            sentence=violation.sentence,
            title=rule.title,
            why=rule.why,
            remedy=rule.remedy,
            change=violation.change,
            source=rule.source,
        )


def judge(case: Case) -> tuple[LintFinding, ...]:
    """The violations, warnings first, otherwise in the order of the registry."""
    found = [
        LintFinding.of(rule, violation)
        for rule in RULES
        if case.state.load_manager in rule.load_managers and (violation := rule.find(case)) is not None
    ]
    return tuple(sorted(found, key=lambda finding: finding.severity != "warning"))
