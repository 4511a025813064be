"""Coloured terminal output: the diagnosis of `doctor`, the tables of `brokers`, the futures of `simulate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pulsar_advisor.documents.broker_tables import Figure, Overall
from pulsar_advisor.model.configuration.resolved_settings import setting_value
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.monitor.tables import OVERALL_HEADINGS, SYSTEM, BrokerLoad, ClusterLoad, broker_rows, notes, overall
from pulsar_advisor.reporting.figures import moment
from pulsar_advisor.reporting.wrapping import columns_of, wrapped

if TYPE_CHECKING:
    from pulsar_advisor.documents.diagnosis import Diagnosis
    from pulsar_advisor.reporting.futures import Future

_WIDTH_OF_FILE: Final = 200
"""Columns to use if the width is unknown: enough for most broker ids; longer ones go on in the next line."""
_COMFORT_LEVEL: Final = "loadBalancerBrokerComfortLoadLevelPercentage"
_OVERLOADED: Final = "loadBalancerBrokerOverloadedThresholdPercentage"

_COLOUR_OF_END: Final = {"settled": "", "unfinished": "yellow", "repeats": "red", "": "dim"}

_TO_DO: Final = " → "

_COLOUR_OF_STATUS: Final = {"ok": "green", "warning": "yellow", "problem": "red"}


def print_diagnosis(diagnosis: Diagnosis, console: Console) -> None:
    """Print one line per row, and the verdict; rich omits colours if the console isn't a terminal."""
    columns = columns_of(console)
    width = max((len(row.check) for row in diagnosis.rows), default=0)
    for row in diagnosis.rows:
        label = f"{row.status:<8} {row.check:<{width}}  "
        todo = f"{_TO_DO}{row.what_to_do}" if row.what_to_do else ""
        line = Text(wrapped(plain(f"{label}{row.sentence}{todo}"), columns, len(label)))
        line.stylize(_COLOUR_OF_STATUS[row.status], 0, len(row.status))
        line.highlight_regex(rf"{_TO_DO.strip()}[\s\S]*", "dim")
        console.print(line, soft_wrap=True)
    console.print(Text(diagnosis.sentence, style=f"bold {'green' if diagnosis.fit else 'red'}"))


def print_futures(futures: Sequence[Future], sentence: str | None, console: Console) -> None:
    """Print the table of `simulate`, and the sentence on Pulsar's own strategies."""
    from pulsar_advisor.reporting.futures import notes, table

    heading, shown = table(futures, console.width)
    console.print(Text(heading, style="dim"), soft_wrap=True)
    for one in shown:
        console.print(
            Text(plain(one.name, keep="\n"), style=f"bold {_COLOUR_OF_END[one.ended]}".strip()), soft_wrap=True
        )
        if one.figures:
            console.print(Text(one.figures), soft_wrap=True)
    for note in notes(futures):
        console.print(Text(note, style="dim"), soft_wrap=True)
    if sentence is not None:
        console.print()
        console.print(Text(wrapped(plain(sentence), columns_of(console), 0), style="bold"), soft_wrap=True)


def _parts(load: ClusterLoad) -> Iterator[RenderableType]:
    """All tables for a terminal: brokers, totals, missing data and notes."""
    yield Text(plain(f"{load.where}, {moment(load.read_at_ms)}"), style="bold")
    for broker in load.brokers:
        yield from ("", _rendered_broker(broker))
    yield from ("", _rendered_overall(overall(load.brokers)))
    yield from (Text(plain(f"{broker}: {reason}"), style="yellow") for broker, reason in sorted(load.missing.items()))
    yield from (Text(plain(note), style="dim") for note in notes(load))


def print_tables(load: ClusterLoad, console: Console) -> None:
    """Print everything, no figure cut on a narrow terminal; rich omits colours if the console isn't a terminal."""
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH_OF_FILE)
    for part in _parts(load):
        if isinstance(part, Table):
            part.width = console.measure(part, options=console.options.update(max_width=_WIDTH_OF_FILE)).maximum
        console.print(part, crop=False)


def _rendered_broker(load: BrokerLoad) -> Table:
    table = Table(title=Text(plain(load.broker)), title_justify="left", title_style="bold", show_header=False)
    table.add_column(style="bold")
    for _ in SYSTEM:
        table.add_column(justify="right")
    for row in broker_rows(load):
        table.add_row(row.label, *(Text(column.heading, style="dim") for column in row.columns))
        cells = (_cell(column.heading, figure) for column, figure in zip(row.columns, row.figures, strict=True))
        table.add_row("", *cells, end_section=True)
    return table


def _rendered_overall(table: Overall) -> Table:
    shown = Table(title="All brokers", title_justify="left", title_style="bold", header_style="dim")
    for heading in OVERALL_HEADINGS:
        shown.add_column(heading, justify="left" if heading == "BROKER" else "right", overflow="fold")
    for row in (*table.brokers, table.total):
        cells = (_cell(heading, figure) for heading, figure in zip(OVERALL_HEADINGS[1:], row.figures, strict=True))
        is_last_broker = bool(table.brokers) and row is table.brokers[-1]
        shown.add_row(
            Text(plain(row.broker)), *cells, end_section=is_last_broker, style="bold" if row is table.total else None
        )
    return shown


def _cell(heading: str, figure: Figure) -> Text:
    if figure is None:
        return Text("-", style="dim")
    if isinstance(figure, int):
        return Text(str(figure))
    return Text(f"{figure:.2f}", style=_colour(figure) if heading.endswith("%") else "")


def _colour(percentage: float) -> str:
    """Colour by Pulsar's default thresholds; the tables don't use the cluster's settings."""
    if percentage >= setting_value(_OVERLOADED):
        return "red"
    return "yellow" if percentage >= setting_value(_COMFORT_LEVEL) else "green"
