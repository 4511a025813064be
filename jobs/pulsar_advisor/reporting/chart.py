"""The chart of broker usage before and after, drawn for wide and for narrow screens as inline SVG."""

from __future__ import annotations

import re
from typing import Final

import altair as alt
import vl_convert

from pulsar_advisor.model.plain_text import plain
from pulsar_advisor.reporting.brokers import BrokerRow, BrokerTable
from pulsar_advisor.reporting.figures import percent

# Colours are names here: the style sheet defines each for light mode, dark mode and print.
_BEFORE: Final = "#b0b7be"
_AFTER: Final = "#2f6690"
_LIMIT: Final = "#b3261e"
_INK: Final = "#1b1f23"
_FAINT: Final = "#e3e6e9"

_FONT: Final = "system-ui, sans-serif"
_BAR_HEIGHT: Final = 12
_PADDING: Final = {"left": 24, "right": 24, "top": 4, "bottom": 8}
"""Margin in pixels, as a reader's font may be wider than the one that the library measured."""
_NAMESPACE_DECLARATIONS: Final = re.compile(r' xmlns(?::\w+)?="[^"]*"')


def usage_chart(table: BrokerTable, width: int, label_width: int) -> str:
    """SVG of the table's brokers: a pale bar for before, a dark one for after, threshold lines, figures on the right.

    `width` and `label_width` are pixels, for the plot and the broker names. Names omit their common domain.
    """
    known = [row for row in table.rows if row.before_ratio is not None and row.after_ratio is not None]
    suffix = shared_suffix([row.id for row in table.rows])
    bars = [_bar(row, suffix) for row in known]
    top = max([1.0, *(max(row.before_ratio or 0.0, row.after_ratio or 0.0) for row in known)])
    scale = alt.Scale(domain=[0, top], nice=False, zero=True)
    broker = alt.Y("broker:N", sort=None, title=None, axis=alt.Axis(labelLimit=label_width))
    axis = alt.Axis(format=".0%", tickCount=5, title=None)
    plot = alt.Chart(alt.Data(values=bars))
    before = plot.mark_bar(height=_BAR_HEIGHT, color=_BEFORE).encode(
        x=alt.X("before:Q", scale=scale, axis=axis), y=broker
    )
    after = plot.mark_bar(height=_BAR_HEIGHT // 2, color=_AFTER).encode(x=alt.X("after:Q", scale=scale), y=broker)
    figures = plot.mark_text(align="left", dx=10, fontSize=11, color=_INK).encode(
        x=alt.value(width), y=broker, text="figures:N"
    )
    limits = []
    for level, threshold in enumerate(table.thresholds):  # labels on separate levels: the lines may be close
        line = alt.Chart(alt.Data(values=[{"ratio": threshold.ratio, "label": threshold.label}]))
        x = alt.X("ratio:Q", scale=scale)
        limits.append(line.mark_rule(color=_LIMIT, strokeDash=[4, 3]).encode(x=x))
        limits.append(
            line.mark_text(color=_LIMIT, align="right", dy=-4 - 14 * level, fontSize=11, baseline="bottom").encode(
                x=x, y=alt.value(0), text="label:N"
            )
        )
    chart = (
        alt.layer(before, after, figures, *limits)
        .properties(width=width, height=alt.Step(22), background="transparent", padding=_PADDING)
        .configure(font=_FONT)
        .configure_view(stroke=None)
        .configure_axis(labelColor=_INK, gridColor=_FAINT, domainColor=_FAINT, tickColor=_FAINT, labelFontSize=11)
        .configure_axisY(grid=False, ticks=False, domain=False, labelPadding=8)
    )
    svg = vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])
    return _NAMESPACE_DECLARATIONS.sub("", str(svg), count=2)


def shared_suffix(broker_ids: list[str]) -> str:
    """The domain and port (or the port) that all brokers share; empty for fewer than two brokers.

    Trailing numbers of an address are not a domain: `10.0.1.7:8080` and `10.0.2.7:8080` share the port only.
    """
    if len(broker_ids) < 2:
        return ""
    first = broker_ids[0]
    endings = (first[i:] for i in range(1, len(first)) if first[i] in ".:")
    return next(
        (
            ending
            for ending in endings
            if all(broker.endswith(ending) and broker != ending for broker in broker_ids)
            and (ending[0] == ":" or any(char.isalpha() for char in ending))
        ),
        "",
    )


def text_alternative(table: BrokerTable) -> str:
    """The chart's content, in words."""
    known = [row for row in table.rows if row.before_ratio is not None and row.after_ratio is not None]
    busiest = max(known, key=lambda row: row.before_ratio or 0.0)
    later = max(known, key=lambda row: row.after_ratio or 0.0)
    lines = ", ".join(f"{line.label} at {percent(line.ratio)}" for line in table.thresholds)
    return plain(
        f"Bar chart of usage before and after, {len(known)} brokers. Highest before: {busiest.id} at "
        f"{percent(busiest.before_ratio)}. Highest after: {later.id} at {percent(later.after_ratio)}."
        + (f" Thresholds: {lines}." if lines else "")
        + " The table below has every figure."
    )


def _bar(row: BrokerRow, suffix: str) -> dict[str, str | float | None]:
    before, after = percent(row.before_ratio, 0), percent(row.after_ratio, 0)
    return {
        "broker": plain(row.id.removesuffix(suffix) if suffix else row.id),
        "before": row.before_ratio,
        "after": row.after_ratio,
        "figures": before if before == after else f"{before} → {after}",
    }
