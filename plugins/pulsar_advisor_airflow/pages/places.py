"""Where pages read: the root of a cluster, and the installation's ledger, kept open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from sqlalchemy import URL

from pulsar_advisor.execution.ledger.address import ledger_url
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import is_current, ledger_exists, open_ledger
from pulsar_advisor.storage.root import Root
from pulsar_advisor_airflow.clusters import Cluster
from pulsar_advisor_airflow.configuration import option


def root_of(cluster: Cluster) -> Root:
    """The root of a cluster."""
    return Root(option("root"), cluster.name)


@contextmanager
def ledger_if_any() -> Iterator[Ledger | None]:
    """The configured ledger; none is created."""
    address = option("ledger") or Root(option("root"), "any").ledger_url
    url = ledger_url(address)
    if not ledger_exists(address):
        yield None
        return
    ledger = _opened(address, url, _inode(url))
    if not is_current(ledger):  # another release has migrated it, so writes must match its tables
        _opened.cache_clear()
        ledger = _opened(address, url, _inode(url))
    yield ledger


@lru_cache(maxsize=1)
def _opened(address: str, _url: URL, _inode: int) -> Ledger:
    """An open ledger, kept open because opening one takes longer than a page's queries.

    It is opened anew once the address refers to another URL, such as one with a new password.
    """
    return open_ledger(address)


def _inode(url: URL) -> int:
    """A number that changes if somebody replaces a ledger's file; 0 if the ledger is on a server."""
    return Path(url.database).stat().st_ino if url.get_backend_name() == "sqlite" and url.database else 0
