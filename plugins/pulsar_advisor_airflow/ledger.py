"""Opens the ledger that this installation names, and says who vouches for a name that Airflow gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pulsar_advisor_airflow.configuration import option

if TYPE_CHECKING:
    from pulsar_advisor.execution.ledger import Ledger
    from pulsar_advisor.storage.root import Root

AUTHENTICATED_BY: Final = "airflow"


@contextmanager
def opened_ledger(root: Root) -> Iterator[Ledger]:
    """The ledger of `[pulsar_advisor] ledger`, or SQLite in the root; closed with the block."""
    from pulsar_advisor.execution.ledger import default_ledger_url, open_ledger

    ledger = open_ledger(option("ledger") or default_ledger_url(root))
    try:
        yield ledger
    finally:
        ledger.close()
