"""Applies every rule to a cluster."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from pulsar_advisor.lint.registry import RULES
from pulsar_advisor.lint.rule import Case, Rule, Severity, Violation
from pulsar_advisor.simulation.trials import Trial


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


@dataclass(frozen=True, kw_only=True)
class FindingWithEffect(LintFinding):
    """A violated rule, and what the cluster's own balancer would do with the proposed change."""

    effect: Trial | None
    """None if no change is proposed, or it was not simulated."""

    @property
    def finding(self) -> LintFinding:
        """The finding alone."""
        return LintFinding(**{field.name: getattr(self, field.name) for field in fields(LintFinding)})


def proposals(findings: Iterable[LintFinding], tried: Iterable[Trial]) -> tuple[FindingWithEffect, ...]:
    """Each violation with the trial of its change, warnings first, in each group the best proposals first.

    A change that ends no better than today is not proposed: its violation stays, last in its group if it ends worse,
    and the trial says why.
    """
    of_change = {_key(trial.change): trial for trial in tried}

    def with_effect(finding: LintFinding) -> FindingWithEffect:
        trial = of_change.get(_key(finding.change)) if finding.change else None
        kept = finding if trial is None or trial.is_proposed else replace(finding, change={})
        return FindingWithEffect(**vars(kept), effect=trial)

    def rank(finding: FindingWithEffect) -> tuple[bool, bool, float]:
        ending = finding.effect.score if finding.effect is not None and finding.change else None
        is_refuted = finding.effect is not None and finding.effect.verdict == "worse"
        least = math.inf if ending is None else ending.last_usage_maximum_ratio
        return finding.severity != "warning", is_refuted, least

    return tuple(sorted(map(with_effect, findings), key=rank))


def _key(change: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(change.items()))
