"""The verdict and the three most important findings, abridged for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from rich.console import Console
from rich.text import Text

from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.reporting.figures import count, sentence
from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.reporting.verdict import Command
from pulsar_advisor.reporting.wrapping import columns_of, wrapped

_SHOWN: Final = 3
"""Items shown of a list; the report has all of it."""
COMMANDS_SHOWN: Final = 2
"""Those up to the approval."""
_LABEL: Final = 16
"""Columns of a label."""
_COLOUR_OF_KIND: Final = {
    "act": "blue",
    "nothing": "green",
    "unsolved": "yellow",
    "not_executable": "yellow",
    "not_fit": "red",
}
_COLOUR_OF_GRADE: Final = {"high": "green", "medium": "yellow", "low": "red"}
_COLOUR_OF_SEVERITY: Final = {"warning": "yellow", "info": ""}


def render_terminal(
    page: ReportPage, console: Console, before: Sequence[Command] = (), *, has_report: bool = False
) -> None:
    """Print to the console; rich omits colours if the console isn't a terminal.

    `before`: what the reader's shell needs before the page's commands. `has_report`: a report of this answer was
    written; otherwise that of an earlier one may lie there.
    """
    verdict = page.verdict
    report = "the report" if has_report else f"`pulsar-advisor report --snapshot {page.snapshot}`"
    columns = columns_of(console)

    def line(text: str, style: str = "") -> None:
        console.print(Text(wrapped(plain(text), columns, 0), style=style), soft_wrap=True)

    def fact(label: str, text: str, style: str = "") -> None:
        body = wrapped(f"{'':<{_LABEL}}{plain(text)}", columns, _LABEL)[_LABEL:]
        console.print(Text.assemble((f"{label:<{_LABEL}}", "dim"), (body, style)), soft_wrap=True)

    def some(label: str, found: Iterable[tuple[str, str]]) -> None:
        rest = iter(found)
        for text, style in islice(rest, _SHOWN):
            fact(label, text, style)
        if more := len(list(rest)):
            fact(label, f"{more:,} more: see {report}.")

    if verdict.goal:
        line(verdict.goal, "bold red")
    line(verdict.headline, f"bold {_COLOUR_OF_KIND['unsolved' if page.is_unsolved else verdict.kind]}")
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
    some("Doubt", ((f"{count(one.number, 'step')}: {one.text}", "") for one in verdict.doubts))
    some("Worse outcome", ((f"{why[:1].upper()}{why[1:]}", "red") for why in verdict.warnings))
    if page.disturbance is not None and verdict.commands and (impact := " ".join(page.disturbance.sentences)):
        fact("Impact", impact)
    if verdict.pulsar:
        fact("Own balancer", sentence(verdict.pulsar))
    some(
        "Not executable", ((f"{count(one.number, 'step')}: {sentence(one.text)}", "") for one in verdict.not_executable)
    )
    refusals = (f"{one.strategy} as {one.role}: {one.missing} is missing ({one.reason})." for one in page.refusals)
    some("Not judged", ((text, "") for text in refusals))
    fact("Coverage", page.trust.coverage.sentence)
    others = [one for one in page.findings if one.sentence not in verdict.headline]
    some("Finding", ((one.sentence, _COLOUR_OF_SEVERITY[one.severity]) for one in others))
    for command in (*before, *verdict.commands[:COMMANDS_SHOWN]) if verdict.commands else ():
        console.print()
        line(f"{command.purpose}:", "dim")
        for part in command.continued.splitlines():
            line(part)
    if page.next is not None:
        console.print()
        for text in page.next.sentences:
            fact("What next", text)
