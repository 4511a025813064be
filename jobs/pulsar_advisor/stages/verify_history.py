"""`history verify`: checks the files of all folded days against their results, and these against the ledger's seals."""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_advisor.documents.history_day import HistoryDay
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import ledger_if_any
from pulsar_advisor.history.columns import DAY_TABLES
from pulsar_advisor.stages.seal import is_sealed_elsewhere, why_no_sealed_day
from pulsar_advisor.storage.history import day_if_any, folded_days
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.days import damage


def run(root: Root, address: str | None = None) -> tuple[int, list[str]]:
    """The number of readable days, and everything that is wrong. `address` is the ledger's, as for `fold`."""
    days, found = folded_days(root)
    with ledger_if_any(address or root.own_ledger_url) as ledger:
        for day in days:
            wrong = list(_wrong(root, day, ledger))
            if wrong and (now := day_if_any(root.day(day.day))) not in (day, None):
                wrong = list(_wrong(root, now, ledger))  # another process folded it meanwhile
            found += wrong
    return len(days), found


def _wrong(root: Root, folded: HistoryDay, ledger: Ledger | None) -> Iterator[str]:
    yield from damage(root, folded, DAY_TABLES)
    day = root.day(folded.day)
    if is_sealed_elsewhere(ledger, day, folded):
        none = "there is none" if ledger is None else "this one has no seal of it"
        yield f"{day.result_file} can't be compared: the day is sealed in a ledger, but {none}: give --ledger"
    elif ledger is not None and (why := why_no_sealed_day(ledger, day)):
        yield why
