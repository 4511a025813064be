"""The rules, in the order in which they are shown: every one of these modules."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.lint import bundles, configuration, load_reports, splits, strategies, thresholds
from pulsar_advisor.lint.rule import Rule

RULES: Final = tuple(
    one
    for module in (strategies, thresholds, load_reports, bundles, splits, configuration)
    for one in vars(module).values()
    if isinstance(one, Rule)
)
