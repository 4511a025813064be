"""The page over all clusters of a root: one self-contained HTML page without a script, the worst cluster on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pulsar_advisor.reporting.figures import UNKNOWN, count, percent
from pulsar_advisor.reporting.page_environment import page_environment

_WIDTH, _HEIGHT, _MARGIN = 140, 28, 3
"""Size of a cluster's line, in pixels."""


@dataclass(frozen=True)
class FleetRow:
    """A cluster over some days."""

    cluster: str
    days: int
    """Number of folded days in the period."""
    imported: int
    """How many of them come from a monitoring system, whose figures are less sure."""
    snapshots: int
    fit: int
    brokers: int
    bundles: int
    busiest: tuple[float | None, ...]
    """The busiest broker's usage (0..1) on each day from the first to the last; None for a day without a fit
    snapshot."""
    now: float | None
    """The same in the last fit snapshot."""
    day: str
    """The day of that snapshot, `YYYY-MM-DD`; empty without one."""
    excess: float | None
    """How far above the mean it was on that day (0..1)."""
    slope: str
    """The busiest broker's slope in words."""
    moves: str
    changed_settings: int
    restarts: int
    verdict: str
    """What was last advised, and whether that was carried out since, or why nothing was."""
    advised_at: str = ""
    """When the snapshot that says so was taken; empty without one."""
    report: str | None = None
    """Link from the page to the report of that snapshot, if it has one."""
    problem: str | None = None
    """Why some of its data can't be shown."""


def worst_first(rows: Sequence[FleetRow]) -> list[FleetRow]:
    """The clusters: first those about which nothing is known, then by their busiest broker's usage."""
    return sorted(rows, key=lambda row: (row.now is not None, -(row.now or 0.0), row.cluster))


def render_fleet(rows: Sequence[FleetRow], days: int, way_back: str | None = None) -> str:
    """The page as HTML text, the same for the same rows; `days` is the length of the period.

    `way_back` is the address of a page over the same clusters that led here.
    """
    environment = page_environment()
    environment.filters.update(percent=percent, count=count, line=_line)
    return environment.get_template("fleet.html").render(rows=worst_first(rows), days=days, way_back=way_back)


def _line(values: Sequence[float | None]) -> Markup:
    """The daily medians as a line from 0 to 100 %, or to the highest; a gap where nothing is known."""
    top = max([1.0, *(value for value in values if value is not None)])
    across = (_WIDTH - 2 * _MARGIN) / max(len(values) - 1, 1)
    path, pen = [], "M"
    for place, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        point = f"{_MARGIN + place * across:.1f} {_HEIGHT - _MARGIN - value / top * (_HEIGHT - 2 * _MARGIN):.1f}"
        path.append(f"M{point}h0" if pen == "M" else f"L{point}")  # a single day is a dot
        pen = "L"
    known = [percent(value) for value in values if value is not None]
    label = f"from {known[0]} to {known[-1]}" if len(known) > 1 else next(iter(known), UNKNOWN)
    return Markup(
        '<svg role="img" aria-label="{label}" width="{width}" height="{height}"><title>{label}</title><path '
        'fill="none" stroke="var(--after)" stroke-width="1.5" stroke-linecap="round" d="{path}"/></svg>'
    ).format(label=label, width=_WIDTH, height=_HEIGHT, path=" ".join(path))
