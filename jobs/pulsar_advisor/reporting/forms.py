"""The forms of a report. Adding one takes a module with a function from a page to text, and a line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pulsar_advisor.reporting.page import ReportPage

FORMS: Final[Mapping[str, str]] = {
    "html": "pulsar_advisor.reporting.html:render_html",
    "json": "pulsar_advisor.reporting.json:json_chunks",
    "md": "pulsar_advisor.reporting.markdown:render_markdown",
    "csv": "pulsar_advisor.reporting.csv:csv_lines",
}
"""Name (also the file extension) -> the function that renders a page, whole or in pieces. Imported on demand: the chart
library, which only HTML needs, takes a second to load."""

if TYPE_CHECKING:
    Form = str
else:
    Form = Literal[tuple(FORMS)]  # what the command line offers and completes


def rendered(page: ReportPage, form: Form) -> Iterable[str]:
    """A page in one form, in pieces."""
    text: str | Iterable[str] = resolve_name(FORMS[form])(page)
    return (text,) if isinstance(text, str) else text
