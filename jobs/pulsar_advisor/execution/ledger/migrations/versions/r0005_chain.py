"""Events form a hash chain and name the rows they wrote; triggers refuse changes that no release makes.

Events of earlier releases are chained unchanged. One more event then names every existing row, so that from here on
each row has an event that wrote it. This drops the undo plan made from the plan before a run: `undo` now builds it from
the confirmed steps, on request.
"""

from __future__ import annotations

import json
import time

import sqlalchemy as sa
from alembic import op

from pulsar_advisor.execution.ledger.chain import START, Value, chained, row_hash
from pulsar_advisor.execution.ledger.triggers import POSTGRESQL_FUNCTION, TABLES_SINCE_0005, Dialect, triggers

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_KEYS = {"plans": "digest", "proposals": "id", "approvals": "id", "runs": "id", "steps": "id"}
_OLD_TRIGGERS = {
    "sqlite": ("DROP TRIGGER events_no_update", "DROP TRIGGER events_no_delete"),
    "postgresql": ("DROP TRIGGER events_only_added ON events", "DROP FUNCTION events_only_added"),
}


def upgrade() -> None:
    """Chain the events and create the triggers."""
    dialect: Dialect = "sqlite" if op.get_bind().dialect.name == "sqlite" else "postgresql"
    for statement in _OLD_TRIGGERS[dialect]:
        op.execute(statement)
    op.drop_column("runs", "undo_plan")
    op.add_column("events", sa.Column("rows", sa.Text, nullable=False, server_default="{}"))
    op.add_column("events", sa.Column("chain", sa.String(64), nullable=False, server_default=""))
    _chain_events(op.get_bind())
    if dialect == "postgresql":
        op.execute(POSTGRESQL_FUNCTION)
    for table in TABLES_SINCE_0005:
        for trigger in triggers(table, dialect):
            op.execute(trigger.create(dialect))


def _chain_events(connection: sa.Connection) -> None:
    tables = sa.MetaData()
    tables.reflect(connection, only=["events", *_KEYS])
    events = tables.tables["events"]
    previous = START
    number = 0
    for event in connection.execute(sa.select(events).order_by(events.c.id)).mappings().all():
        previous = chained(previous, row_hash({name: value for name, value in event.items() if name != "chain"}))
        number = event["id"]
        connection.execute(sa.update(events).where(events.c.id == number).values(chain=previous))
    rows = {
        f"{name}/{row[key]}": row_hash({c: v for c, v in row.items() if (name, c) != ("runs", "heartbeat_at_ms")})
        for name, key in _KEYS.items()
        for row in connection.execute(sa.select(tables.tables[name])).mappings()
    }
    if not rows and not number:
        return
    noted: dict[str, Value] = {
        "id": number + 1,
        "at_ms": time.time_ns() // 1_000_000,
        "digest": "",
        "kind": "chained",
        "detail": "earlier events were chained as they were found, and every row was noted",
        "rows": json.dumps(rows, sort_keys=True),
    }
    connection.execute(sa.insert(events).values(**noted, chain=chained(previous, row_hash(noted))))
