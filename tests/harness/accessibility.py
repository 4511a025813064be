"""What axe, the checker for screen readers and keyboards, finds wrong with a page, and whether it fits a phone."""

from __future__ import annotations

from typing import Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Frame, Page, ViewportSize

TELEPHONE: Final[ViewportSize] = {"width": 360, "height": 780}


def violations(page: Page | Frame) -> list[str]:
    """A line for each rule that the page, or a frame of it, violates."""
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['help']} ({'; '.join(str(node['target']) for node in each['nodes'])})" for each in found
    ]


def is_too_wide(page: Page | Frame) -> bool:
    """Whether a reader has to scroll it, or a table of one of our pages, sideways to see all of it."""
    return bool(
        page.evaluate(
            "document.documentElement.scrollWidth > innerWidth || "
            "[...document.querySelectorAll('.scroll[role=region]')].some(each => each.scrollWidth > each.clientWidth)"
        )
    )
