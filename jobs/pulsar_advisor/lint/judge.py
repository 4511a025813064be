"""Applies every rule to a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pulsar_advisor.lint.registry import RULES
from pulsar_advisor.lint.rule import Case, Rule, Violation


@dataclass(frozen=True)
class Finding:
    """A rule and how the cluster violates it."""

    rule: Rule
    violation: Violation

    def document(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {
            "rule": self.rule.name,
            "severity": self.rule.severity,
            "title": self.rule.title,
            "sentence": self.violation.sentence,
            "why": self.rule.why,
            "remedy": self.rule.remedy,
            "change": dict(self.violation.change),
            "source": self.rule.source,
        }


def judge(case: Case) -> tuple[Finding, ...]:
    """The violations, warnings first, otherwise in the order of the registry."""
    found = [
        Finding(rule, violation)
        for rule in RULES
        if case.state.load_manager in rule.load_managers and (violation := rule.find(case)) is not None
    ]
    return tuple(sorted(found, key=lambda finding: finding.rule.severity != "warning"))
