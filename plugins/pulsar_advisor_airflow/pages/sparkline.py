"""A sparkline: a series as a line without axes, in inline SVG with the colour of the text around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

_MARGIN = 2.5
"""Room for the dot at the end of the line."""


def sparkline(values: Sequence[float | None], label: str, width: int = 96, height: int = 20) -> Markup:
    """The line through a series, oldest first, from zero up to its highest value, with a dot at the newest.

    None leaves a gap. `label` is for those who can't see it. Empty without any value.
    """
    points = list(_points(values, width, height))
    if not any(points):
        return Markup("")
    lines = [
        " ".join(f"{x:.1f},{y:.1f}" for x, y in piece)
        for piece in (list(filter(None, group)) for known, group in groupby(points, bool) if known)
        if len(piece) > 1
    ]
    x, y = next(point for point in reversed(points) if point)
    drawn = Markup("").join(
        Markup('<polyline fill="none" stroke="currentColor" stroke-width="1.5" points="{}"/>').format(line)
        for line in lines
    )
    return Markup(
        '<svg class="spark" role="img" aria-label="{label}" width="{width}" height="{height}" '
        'viewBox="0 0 {width} {height}"><title>{label}</title>{drawn}'
        '<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="currentColor"/></svg>'
    ).format(label=label, width=width, height=height, drawn=drawn, x=x, y=y)


def _points(values: Sequence[float | None], width: int, height: int) -> Iterator[tuple[float, float] | None]:
    top = max((value for value in values if value is not None), default=0.0)
    across = (width - 2 * _MARGIN) / max(len(values) - 1, 1)
    for number, value in enumerate(values):
        share = 0.0 if value is None or top == 0 else value / top
        yield None if value is None else (_MARGIN + number * across, height - _MARGIN - share * (height - 2 * _MARGIN))
