"""Gives a new SQLite ledger a copy of its tables: Alembic's revisions take a third of a second to make them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from sqlalchemy import Connection, create_engine, inspect

from pulsar_advisor.execution.ledger import upgrading

by_revisions = upgrading.upgrade


@cache
def _tables() -> tuple[str, ...]:
    """The statements that make an empty ledger what the revisions make it."""
    with create_engine("sqlite://").connect() as connection:
        by_revisions(connection)
        connection.commit()
        first, *statements, last = connection.connection.iterdump()  # type: ignore[attr-defined]  # sqlite3's own
    assert (first, last) == ("BEGIN TRANSACTION;", "COMMIT;")
    return tuple(statements)


def by_copy(connection: Connection) -> None:
    """As `upgrading.upgrade`, but for a ledger that has no tables yet."""
    if connection.dialect.name != "sqlite" or inspect(connection).get_table_names():
        by_revisions(connection)
        return
    for statement in _tables():
        connection.exec_driver_sql(statement)


@pytest.fixture(scope="session", autouse=True)
def new_ledgers_are_copies() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upgrading, "upgrade", by_copy)
        yield
