"""The verdict and the three most important findings, abridged for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.reporting.figures import count, sentence
from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.reporting.verdict import Command
from pulsar_advisor.reporting.wrapping import columns_of, wrapped

FINDINGS_SHOWN: Final = 3
COMMANDS_SHOWN: Final = 2
"""Those up to the approval."""
_REASONS_SHOWN: Final = 3
_LABEL: Final = 16
"""Columns of a label."""
_COLOUR_OF_KIND: Final = {"act": "blue", "nothing": "green", "not_executable": "yellow", "not_fit": "red"}
_COLOUR_OF_GRADE: Final = {"high": "green", "medium": "yellow", "low": "red"}
_COLOUR_OF_SEVERITY: Final = {"critical": "red", "warning": "yellow", "info": ""}


def render_terminal(page: ReportPage, console: Console, before: Sequence[Command] = ()) -> None:
    """Print to the console; rich omits colours if the console isn't a terminal.

    `before`: what this reader's shell needs before the commands of the page.
    """
    verdict = page.verdict
    columns = columns_of(console)

    def line(text: str, style: str = "") -> None:
        console.print(Text(wrapped(plain(text), columns, 0), style=style), soft_wrap=True)

    def fact(label: str, text: str, style: str = "") -> None:
        body = wrapped(f"{'':<{_LABEL}}{plain(text)}", columns, _LABEL)[_LABEL:]
        console.print(Text.assemble((f"{label:<{_LABEL}}", "dim"), (body, style)), soft_wrap=True)

    if verdict.goal:
        line(verdict.goal, "bold red")
    line(verdict.headline, f"bold {_COLOUR_OF_KIND[verdict.kind]}")
    console.print()
    for number, option in enumerate(page.options.rows if page.options else (), 1):
        plan = f" ({option.plan})" if option.plan else ""
        holds = "" if option.plan else f", if {option.condition}"
        text = f"{option.sentence}{plan}: {option.effect}; {option.cost}{holds}."
        fact(f"Option {number}", text, "bold" if option.advised else "")
    if page.options and page.options.rows:
        console.print()
    if verdict.confidence:
        fact("Confidence", verdict.confidence, _COLOUR_OF_GRADE[verdict.confidence])
    for doubt in verdict.doubts[:_REASONS_SHOWN]:
        fact("Doubt", f"{count(doubt.number, 'step')}: {doubt.text}")
    for warning in verdict.warnings[:_REASONS_SHOWN]:
        fact("To be accepted", f"{warning[:1].upper()}{warning[1:]}", "red")
    if page.disturbance is not None and verdict.commands and (impact := " ".join(page.disturbance.sentences)):
        fact("Impact", impact)
    if verdict.pulsar:
        fact("Own balancer", sentence(verdict.pulsar))
    for tally in verdict.not_executable[:_REASONS_SHOWN]:
        fact("Not executable", f"{count(tally.number, 'step')}: {sentence(tally.text)}")
    for refusal in page.refusals[:_REASONS_SHOWN]:
        fact("Not judged", f"{refusal.strategy} as {refusal.role}: {refusal.missing} is missing ({refusal.reason}).")
    if len(page.refusals) > _REASONS_SHOWN:
        fact("Not judged", f"{len(page.refusals) - _REASONS_SHOWN:,} more: see the report.")
    fact("Coverage", page.trust.coverage.sentence)
    for finding in page.findings[:FINDINGS_SHOWN]:
        fact("Finding", finding.sentence, _COLOUR_OF_SEVERITY[finding.severity])
    for command in (*before, *verdict.commands[:COMMANDS_SHOWN]) if verdict.commands else ():
        console.print()
        line(f"{command.purpose}:", "dim")
        for part in command.continued.splitlines():
            line(part)
    if page.next is not None:
        console.print()
        for text in page.next.sentences:
            fact("What next", text)
