"""The steps of the advised plan as CSV, one line per step, for a spreadsheet or a ticket."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any, Final

from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.reporting.steps import in_plan_order

COLUMNS: Final = (
    "step",
    "action",
    "namespace",
    "bundle",
    "source",
    "destination",
    "algorithm",
    "boundaries",
    "executable",
    "not_executable_because",
    "confidence",
    "msg_rate_per_s",
    "throughput_bytes_per_s",
    "topics",
    "source_usage_before_ratio",
    "source_usage_after_ratio",
    "destination_usage_before_ratio",
    "destination_usage_after_ratio",
    "reason",
    "doubts",
    "checks_passed",
    "checks_failed",
)

_BEGIN_A_FORMULA: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Some spreadsheets read the full-width ones too."""


class _Line:
    """A file for `csv.writer` that makes its `writerow` return the line."""

    def write(self, line: str) -> str:
        return line


def csv_lines(page: ReportPage) -> Iterator[str]:
    """A header and one line per step, in the order of the plan; without steps only the header."""
    writer: Any = csv.writer(_Line(), lineterminator="\n")
    yield writer.writerow(COLUMNS)
    for view in in_plan_order((*page.unloads.shown, *page.splits.shown)):
        step = view.step
        usage = {effect.broker: (effect.before_ratio, effect.after_ratio) for effect in view.effects if step.executable}
        before_and_after = (*usage.get(step.source, (None, None)), *usage.get(step.destination or "", (None, None)))
        row = (
            step.id,
            step.action,
            step.namespace,
            step.bundle,
            step.source,
            step.destination,
            step.algorithm,
            " ".join(step.boundaries),
            str(step.executable).lower(),
            step.not_executable_because,
            step.confidence if step.executable else None,
            step.expect.msg_rate_per_s,
            step.expect.throughput_bytes_per_s,
            step.expect.topics,
            *before_and_after,
            step.reason,
            view.doubts,
            view.rests_on - len(step.failed_checks),
            " ".join(step.failed_checks),
        )
        yield writer.writerow([_harmless(cell) if isinstance(cell, str) else cell for cell in row])


def _harmless(text: str) -> str:
    """The text with an apostrophe before it if a spreadsheet would interpret it as a formula."""
    text = plain(text)
    return f"'{text}" if text.lstrip().startswith(_BEGIN_A_FORMULA) else text
