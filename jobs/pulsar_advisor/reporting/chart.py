"""The charts, drawn for wide and for narrow screens as inline SVG: usage before and after, disruption and balance."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import vl_convert

from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.reporting.brokers import BrokerRow, BrokerTable
from pulsar_advisor.reporting.figures import count, percent
from pulsar_advisor.reporting.options import NOTHING, Options, Tradeoff

_Json = Mapping[str, object]
"""A part of a Vega-Lite chart."""

# Colours go by names that the style sheet defines for light mode, dark mode and print.
_BEFORE: Final = "#b0b7be"
_AFTER: Final = "#2f6690"
_LIMIT: Final = "#b3261e"
_INK: Final = "#1b1f23"
_FAINT: Final = "#e3e6e9"

_FONT: Final = "system-ui, sans-serif"
_BAR_HEIGHT: Final = 12
_LETTER: Final = 6
"""Pixels of a letter in a name, rather more than most take."""
_TRADEOFF_HEIGHT: Final = 220
_TICK_GAP: Final = 36
"""Pixels from one tick to the next, so that their labels don't touch."""
_PADDING: Final = {"left": 24, "right": 24, "top": 4, "bottom": 8}
"""Margin in pixels, as a reader's font may be wider than the one that the library measured."""
_RULE: Final[_Json] = {"type": "rule", "color": _LIMIT, "strokeDash": [4, 3]}
_STYLE: Final[_Json] = {
    "background": "transparent",
    "padding": _PADDING,
    "config": {
        "font": _FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": _INK,
            "titleColor": _INK,
            "titleFontWeight": "normal",
            "gridColor": _FAINT,
            "domainColor": _FAINT,
            "tickColor": _FAINT,
            "labelFontSize": 11,
            "titleFontSize": 11,
        },
        "axisY": {"grid": False, "ticks": False, "domain": False, "labelPadding": 8},
    },
}
_VEGA_LITE: Final = "6.4"
_NAMESPACE_DECLARATIONS: Final = re.compile(r' xmlns(?::\w+)?="[^"]*"')
_ROLES: Final = re.compile(r' (?:role|aria-\w+)="[^"]*"')
"""Roles and labels of a chart's parts, removed because the page describes each chart in words for screen readers."""


def usage_chart(table: BrokerTable, width: int, label_width: int) -> str:
    """SVG of the table's brokers: a pale bar for before, a dark one for after, threshold lines, figures on the right.

    `width` and `label_width` are pixels, for the plot and the broker names. Names omit their common domain.
    """
    suffix = shared_suffix([row.id for row in table.rows])
    bars = [_bar(row, suffix) for row in table.charted]
    usage = (max(row.before_ratio or 0.0, row.after_ratio or 0.0) for row in table.charted)
    top = max([1.0, *usage, *(threshold.ratio for threshold in table.thresholds)])
    scale = {"domain": [0, top], "nice": False, "zero": True}
    # A long name loses its middle: those of one cluster often differ at their ends only.
    names = {"labelLimit": label_width, "labelExpr": f"truncate(datum.label, {label_width // _LETTER}, 'center')"}
    broker = {"field": "broker", "type": "nominal", "sort": None, "title": None, "axis": names}
    ticks = _ticks([threshold.ratio for threshold in table.thresholds], top, _TICK_GAP / width * top)
    axis = {"format": ".0%", "values": ticks, "labelOverlap": False, "title": None}
    before = {"field": "before", "type": "quantitative", "scale": scale, "axis": axis}
    after = {"field": "after", "type": "quantitative", "scale": scale}
    figures: _Json = {"type": "text", "align": "left", "dx": 10, "fontSize": 11, "color": _INK}
    layers: list[_Json] = [
        _layer(bars, {"type": "bar", "height": _BAR_HEIGHT, "color": _BEFORE}, x=before, y=broker),
        _layer(bars, {"type": "bar", "height": _BAR_HEIGHT // 2, "color": _AFTER}, x=after, y=broker),
        _layer(bars, figures, x={"value": width}, y=broker, text=_text("figures")),
    ]
    for level, threshold in enumerate(table.thresholds):  # labels on separate levels: the lines may be close
        line = [{"ratio": threshold.ratio, "label": threshold.label}]
        at = {"field": "ratio", "type": "quantitative", "scale": scale}
        label = {"align": "right", "dy": -4 - 14 * level, "fontSize": 11, "baseline": "bottom"}
        layers.append(_layer(line, _RULE, x=at))
        layers.append(
            _layer(line, {"type": "text", "color": _LIMIT, **label}, x=at, y={"value": 0}, text=_text("label"))
        )
    return _svg(layers, width, {"step": 22})


def _ticks(thresholds: Sequence[float], top: float, gap: float) -> list[float]:
    """A tick at each threshold, and at every fifth of 100 % that is far enough from all others."""
    ticks: list[float] = []
    for ratio in (*thresholds, *(fifth / 5 for fifth in range(math.floor(top * 5) + 1))):
        if all(abs(ratio - other) >= gap for other in ticks):
            ticks.append(ratio)
    return sorted(ticks)


def tradeoff_chart(options: Options, width: int) -> str:
    """SVG of the plans by what they disturb (across) and the busiest broker's usage (up); `width` in pixels.

    Plans on the front are dark, joined, and labelled as in the table of plans. Plans that make the busiest broker
    busier are only in the table: one could be several times as high as all others.
    """
    points = [
        {
            "disturbed": one.disturbed,
            "maximum": one.maximum_ratio,
            "labels": _labels_at(options, one),
            "front": one.on_front,
        }
        for one in _drawn(options)
    ]
    x = {
        "field": "disturbed",
        "type": "quantitative",
        "axis": {
            "format": ",d",
            "tickCount": 5,
            "tickMinStep": 1,
            "title": "topics and clients disturbed",
            "labelFlush": False,
        },
        "scale": {"nice": True, "zero": True},
    }
    y = {
        "field": "maximum",
        "type": "quantitative",
        "axis": {"format": ".0%", "tickCount": 5, "title": None},
        "scale": {"zero": False, "nice": True, "padding": 10},
    }
    front, behind = "datum.front", "!datum.front"
    joined: _Json = {"type": "line", "color": _AFTER, "strokeWidth": 1, "interpolate": "step-after"}
    point: _Json = {"type": "point", "filled": True, "opacity": 1}
    label: _Json = {"type": "text", "align": "left", "dx": 8, "dy": -8, "fontSize": 12, "color": _INK}
    layers = [
        _layer(points, joined, front, x=x, y=y),
        _layer(points, {**point, "size": 60, "color": _BEFORE}, behind, x=x, y=y),
        _layer(points, {**point, "size": 80, "color": _AFTER}, front, x=x, y=y),
        _layer(points, label, front, x=x, y=y, text=_text("labels")),
    ]
    if options.lowest_maximum_ratio is not None:
        layers.append(
            _layer([{"maximum": options.lowest_maximum_ratio}], _RULE, y={"field": "maximum", "type": "quantitative"})
        )
    return _svg(layers, width, _TRADEOFF_HEIGHT)


def _now(options: Options) -> float:
    """The busiest broker's usage if nothing is done."""
    return next(one.maximum_ratio for one in options.tradeoffs if one.name == NOTHING)


def _drawn(options: Options) -> list[Tradeoff]:
    """The plans that don't make the busiest broker busier, and doing nothing."""
    return [one for one in options.tradeoffs if one.maximum_ratio <= _now(options)]


def _labels_at(options: Options, place: Tradeoff) -> str:
    """The labels of all plans at one place of the chart, as in the table."""
    at = (place.disturbed, place.maximum_ratio)
    return ", ".join(one.label for one in options.tradeoffs if (one.disturbed, one.maximum_ratio) == at)


def _layer(values: Sequence[_Json], mark: _Json, only: str | None = None, **encoding: _Json) -> _Json:
    """One mark for each of these values, or for those that satisfy a Vega expression."""
    where = {} if only is None else {"transform": [{"filter": only}]}
    return {"data": {"values": values}, "mark": mark, "encoding": encoding, **where}


def _text(field: str) -> _Json:
    return {"field": field, "type": "nominal"}


def _svg(layers: Sequence[_Json], width: int, height: int | _Json) -> str:
    chart = {"layer": layers, "width": width, "height": height, **_STYLE}
    svg = vl_convert.vegalite_to_svg(chart, vl_version=_VEGA_LITE, allowed_base_urls=[])
    return _ROLES.sub("", _NAMESPACE_DECLARATIONS.sub("", str(svg), count=2))


def tradeoff_text(options: Options) -> str:
    """The chart of disruption and balance, in words."""
    best = min(options.tradeoffs, key=lambda one: one.maximum_ratio)
    lowest = options.lowest_maximum_ratio
    name = best.name[0].upper() + best.name[1:]
    drawn = len(_drawn(options))
    busier = len(options.tradeoffs) - drawn
    return plain(
        f"Chart of {count(drawn, 'choice')} by the topics and clients they disturb and the usage of the "
        f"busiest broker. Without a plan it is at {percent(_now(options))}. {name} reaches the lowest, "
        f"{percent(best.maximum_ratio)}, and disturbs {best.disturbed:,}."
        + (f" Moving whole bundles can't get below {percent(lowest)}." if lowest is not None else "")
        + " The table below has every figure"
        + (f", also of {busier} that would make it busier." if busier else ".")
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
    busiest, later = table.busiest
    lines = ", ".join(f"{line.label} at {percent(line.ratio)}" for line in table.thresholds)
    return plain(
        f"Bar chart of usage before and after, {count(len(table.charted), 'broker')}. Highest before: {busiest.id} at "
        f"{percent(busiest.before_ratio)}. Highest after: {later.id} at {percent(later.after_ratio)}."
        + (f" Thresholds: {lines}." if lines else "")
        + " The table below has every figure."
    )


def _bar(row: BrokerRow, suffix: str) -> _Json:
    before, after = percent(row.before_ratio, 0), percent(row.after_ratio, 0)
    return {
        "broker": plain(row.id.removesuffix(suffix) if suffix else row.id),
        "before": row.before_ratio,
        "after": row.after_ratio,
        "figures": before if before == after else f"{before} → {after}",
    }
