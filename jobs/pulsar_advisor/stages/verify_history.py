"""`history verify`: compares the files of all folded days with their results, and these with the ledger's seals."""

from __future__ import annotations

from pulsar_advisor.execution.ledger.opening import ledger_if_any
from pulsar_advisor.history.columns import DAY_TABLES
from pulsar_advisor.stages.seal import why_no_sealed_day
from pulsar_advisor.storage.history import folded_days
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.days import damage


def run(root: Root, address: str | None = None) -> tuple[int, list[str]]:
    """The number of days that can be read, and all that is wrong. `address` is the ledger's, as for `fold`."""
    days, found = folded_days(root)
    with ledger_if_any(address or root.own_ledger_url) as ledger:
        for day in days:
            found += damage(root, day, DAY_TABLES)
            if ledger is not None and (why := why_no_sealed_day(ledger, root, day.day)):
                found.append(why)
    return len(days), found
