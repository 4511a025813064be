"""The report as one self-contained HTML page: no external resources, every name escaped, one script that sorts."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Final

from jinja2 import Environment
from markupsafe import Markup

from pulsar_advisor.reporting.chart import shared_suffix, text_alternative, tradeoff_chart, tradeoff_text, usage_chart
from pulsar_advisor.reporting.cut import cut_for_readers
from pulsar_advisor.reporting.figures import count, message_rate, percent, sentence, throughput
from pulsar_advisor.reporting.futures import HEADINGS, cells
from pulsar_advisor.reporting.page import ReportPage
from pulsar_advisor.reporting.page_environment import page_environment
from pulsar_advisor.reporting.steps import in_plan_order
from pulsar_advisor.reporting.upgrade import FINDINGS_TITLE, PINS_TITLE

_WIDE: Final = (640, 200)
_NARROW: Final = (150, 96)
"""Pixels for the plot and the broker names."""
_CYCLES_SHOWN: Final = 12
"""Maximum number of cycles in the map of the brokers."""
_BROKERS_LISTED: Final = 500
"""Maximum number in the table of brokers, which can be sorted and filtered; the chart has fewer."""
_WIDE_PLOT: Final = 640
_NARROW_PLOT: Final = 220

_SCRIPT: Final = Markup(files(__package__).joinpath("templates/report.js").read_text(encoding="utf-8"))
SCRIPT_SHA256: Final = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
"""The page's policy allows this script by its hash, and nothing else that a browser could run."""


def render_html(page: ReportPage) -> str:
    """The page as HTML text, deterministic for a given page."""
    charted = cut_for_readers(page).brokers
    all_count = all(row.counts for row in page.brokers.rows)
    tenants = len(page.tenants)
    page = cut_for_readers(page, _BROKERS_LISTED)
    template = _environment().get_template("report.html")
    has_chart = bool(charted.charted)
    options = page.options if page.options is not None and page.options.tradeoffs else None
    return template.render(
        page=page,
        script=_SCRIPT,
        script_sha256=SCRIPT_SHA256,
        # The chart library escapes the names it draws; everything else is escaped by the template.
        wide_chart=Markup(usage_chart(charted, *_WIDE)) if has_chart else "",
        narrow_chart=Markup(usage_chart(charted, *_NARROW)) if has_chart else "",
        chart_text=text_alternative(charted) if has_chart else "",
        wide_tradeoff=Markup(tradeoff_chart(options, _WIDE_PLOT)) if options else "",
        narrow_tradeoff=Markup(tradeoff_chart(options, _NARROW_PLOT)) if options else "",
        tradeoff_text=tradeoff_text(options) if options else "",
        CYCLES_SHOWN=_CYCLES_SHOWN,
        FUTURE_HEADINGS=HEADINGS,
        FINDINGS_TITLE=FINDINGS_TITLE.replace("`", ""),
        PINS_TITLE=PINS_TITLE,
        charted=charted,
        spread_over="all brokers" if all_count else "registered brokers with complete figures",
        listed_steps={view.step.id for view in (*page.unloads.shown, *page.splits.shown)},
        tenants_total=tenants,
        shared_suffix=shared_suffix([row.id for row in charted.rows]),
    )


def _environment() -> Environment:
    environment = page_environment()
    environment.filters.update(
        percent=percent,
        message_rate=message_rate,
        throughput=throughput,
        count=count,
        sentence=sentence,
        in_plan_order=in_plan_order,
        future_cells=cells,
    )
    return environment
