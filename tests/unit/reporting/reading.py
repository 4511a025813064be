"""Reads an HTML page back: its elements, its table rows and its text, by the standard library's parser."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "br", "link", "img", "input", "hr"}


@dataclass
class Reading(HTMLParser):
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self.stack.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> without a start"
        assert self.stack.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] == "style":
            self.styles.append(data)
            return
        self.texts.append(data)
        if "td" in self.stack or "th" in self.stack:
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def row(self, start: str) -> list[str]:
        """Cells of the first row whose first cell starts so."""
        return next([cell.strip() for cell in row] for row in self.rows if row and row[0].strip().startswith(start))


def read(html: str) -> Reading:
    reading = Reading()
    reading.feed(html)
    reading.close()
    assert reading.stack == [], f"never closed: {reading.stack}"
    return reading
