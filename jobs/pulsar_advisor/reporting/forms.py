"""The forms that a report has: HTML, JSON, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal

from pulsar_advisor.reporting.csv import csv_lines
from pulsar_advisor.reporting.json import json_chunks
from pulsar_advisor.reporting.markdown import render_markdown
from pulsar_advisor.reporting.page import ReportPage

Format = Literal["html", "json", "md", "csv"]


def rendered(page: ReportPage, form: Format) -> Iterable[str]:
    """A page in one form, in pieces."""
    return _RENDERERS[form](page)


def _html(page: ReportPage) -> Iterable[str]:
    # Loads the library of charts, which takes a second and which no other form needs.
    from pulsar_advisor.reporting.html import render_html

    yield render_html(page)


_RENDERERS: Final[dict[Format, Callable[[ReportPage], Iterable[str]]]] = {
    "html": _html,
    "md": lambda page: (render_markdown(page),),
    "csv": csv_lines,
    "json": json_chunks,
}
