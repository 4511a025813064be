"""The charts, drawn for wide and for narrow screens as inline SVG: usage before and after, disruption and balance."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

import altair as alt
import vl_convert

from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.reporting.brokers import BrokerRow, BrokerTable
from pulsar_advisor.reporting.figures import count, percent
from pulsar_advisor.reporting.options import Options, Tradeoff

# Colours are names here: the style sheet defines each for light mode, dark mode and print.
_BEFORE: Final = "#b0b7be"
_AFTER: Final = "#2f6690"
_LIMIT: Final = "#b3261e"
_INK: Final = "#1b1f23"
_FAINT: Final = "#e3e6e9"

_FONT: Final = "system-ui, sans-serif"
_BAR_HEIGHT: Final = 12
_TRADEOFF_HEIGHT: Final = 220
_TICK_GAP: Final = 36
"""Pixels from one tick to the next, so that their labels don't touch."""
_PADDING: Final = {"left": 24, "right": 24, "top": 4, "bottom": 8}
"""Margin in pixels, as a reader's font may be wider than the one that the library measured."""
_NAMESPACE_DECLARATIONS: Final = re.compile(r' xmlns(?::\w+)?="[^"]*"')
_ROLES: Final = re.compile(r' (?:role|aria-\w+)="[^"]*"')
"""Of the parts of a chart: the page describes each chart in words, so its parts are nothing to a screen reader."""


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
    ticks = _ticks([threshold.ratio for threshold in table.thresholds], top, _TICK_GAP / width * top)
    axis = alt.Axis(format=".0%", values=ticks, labelOverlap=False, title=None)
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
    layers = alt.layer(before, after, figures, *limits)
    return _svg(layers.properties(width=width, height=alt.Step(22)))


def _ticks(thresholds: Sequence[float], top: float, gap: float) -> list[float]:
    """A tick at each threshold within the chart, and at every fifth of 100 % that is far enough from all others."""
    ticks: list[float] = []
    for ratio in (*thresholds, *(fifth / 5 for fifth in range(math.floor(top * 5) + 1))):
        if ratio <= top and all(abs(ratio - other) >= gap for other in ticks):
            ticks.append(ratio)
    return sorted(ticks)


def tradeoff_chart(options: Options, width: int) -> str:
    """SVG of the plans by what they disturb (across) and the busiest broker's usage (up); `width` in pixels.

    Plans on the front are dark, joined, and labelled as in the table of plans. Those that make the busiest broker
    busier are left to the table: one of them can be several times as high as all others.
    """
    now = max(one.maximum_ratio for one in options.tradeoffs if one.on_front)
    points = [
        {
            "disturbed": one.disturbed,
            "maximum": one.maximum_ratio,
            "labels": _labels_at(options, one),
            "front": one.on_front,
        }
        for one in options.tradeoffs
        if one.maximum_ratio <= now
    ]
    x = alt.X(
        "disturbed:Q",
        axis=alt.Axis(format=",d", tickCount=5, tickMinStep=1, title="topics and clients disturbed", labelFlush=False),
        scale=alt.Scale(nice=True, zero=True),
    )
    y = alt.Y(
        "maximum:Q",
        axis=alt.Axis(format=".0%", tickCount=5, title=None),
        scale=alt.Scale(zero=False, nice=True, padding=10),
    )
    plot = alt.Chart(alt.Data(values=points))
    front = plot.transform_filter("datum.front")
    layers = [
        front.mark_line(color=_AFTER, strokeWidth=1, interpolate="step-after").encode(x=x, y=y),
        plot.transform_filter("!datum.front")
        .mark_point(filled=True, size=60, color=_BEFORE, opacity=1)
        .encode(x=x, y=y),
        front.mark_point(filled=True, size=80, color=_AFTER, opacity=1).encode(x=x, y=y),
        front.mark_text(align="left", dx=8, dy=-8, fontSize=12, color=_INK).encode(x=x, y=y, text="labels:N"),
    ]
    if options.lowest_maximum_ratio is not None:
        line = alt.Chart(alt.Data(values=[{"maximum": options.lowest_maximum_ratio}]))
        layers.append(line.mark_rule(color=_LIMIT, strokeDash=[4, 3]).encode(y=y))
    return _svg(alt.layer(*layers).properties(width=width, height=_TRADEOFF_HEIGHT))


def _labels_at(options: Options, place: Tradeoff) -> str:
    """The labels of all plans at a place of the chart, as in the table."""
    at = (place.disturbed, place.maximum_ratio)
    return ", ".join(one.label for one in options.tradeoffs if (one.disturbed, one.maximum_ratio) == at)


def _svg(chart: alt.LayerChart) -> str:
    styled = (
        chart.properties(background="transparent", padding=_PADDING)
        .configure(font=_FONT)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=_INK,
            titleColor=_INK,
            titleFontWeight="normal",
            gridColor=_FAINT,
            domainColor=_FAINT,
            tickColor=_FAINT,
            labelFontSize=11,
            titleFontSize=11,
        )
        .configure_axisY(grid=False, ticks=False, domain=False, labelPadding=8)
    )
    svg = vl_convert.vegalite_to_svg(styled.to_dict(), allowed_base_urls=[])
    return _ROLES.sub("", _NAMESPACE_DECLARATIONS.sub("", str(svg), count=2))


def tradeoff_text(options: Options) -> str:
    """The chart of disruption and balance, in words."""
    front = [one for one in options.tradeoffs if one.on_front]
    best = min(front, key=lambda one: one.maximum_ratio)
    lowest = options.lowest_maximum_ratio
    return plain(
        f"Chart of {len(options.tradeoffs)} choices by the topics and clients they disturb and the usage of the "
        f"busiest broker. Without a plan it is at {percent(front[0].maximum_ratio)}. {best.name} reaches the lowest, "
        f"{percent(best.maximum_ratio)}, and disturbs {best.disturbed:,}."
        + (f" No moves of whole bundles reach less than {percent(lowest)}." if lowest is not None else "")
        + " The table below has every figure."
    )


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
        f"Bar chart of usage before and after, {count(len(known), 'broker')}. Highest before: {busiest.id} at "
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
