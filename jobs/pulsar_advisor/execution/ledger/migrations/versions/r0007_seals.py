"""The hash of what each stage wrote about a snapshot; and whether a proposed plan could be computed again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pulsar_advisor.execution.ledger.triggers import TABLES_SINCE_0007, Dialect, triggers

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and its triggers, and the column."""
    op.create_table(
        "seals",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("cluster", sa.String(200), nullable=False),
        sa.Column("snapshot", sa.String(16), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("plans", sa.Text, nullable=False),
        sa.Column("release", sa.String(40), nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("seals_of_a_snapshot", "seals", ["cluster", "snapshot"])
    op.add_column("proposals", sa.Column("not_computed_here", sa.Text, nullable=True))
    dialect: Dialect = "sqlite" if op.get_bind().dialect.name == "sqlite" else "postgresql"
    for table in TABLES_SINCE_0007:
        for trigger in triggers(table, dialect):
            op.execute(trigger.create(dialect))
