"""A summary of each plan, so that lists don't read every document; those of earlier plans are made here."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pulsar_advisor.execution.ledger.plan_summary import summary_of

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, and a row for each plan."""
    summaries = op.create_table(
        "plan_summaries",
        sa.Column("digest", sa.String(71), sa.ForeignKey("plans.digest"), primary_key=True),
        sa.Column("cluster", sa.String(200), nullable=False),
        sa.Column("snapshot", sa.String(16), nullable=False),
        sa.Column("recorded_at_ms", sa.BigInteger, nullable=False),
        sa.Column("shedder", sa.Text, nullable=False),
        sa.Column("placement", sa.Text, nullable=False),
        sa.Column("executable_steps", sa.Integer, nullable=False),
        sa.Column("maximum_before", sa.Double, nullable=True),
        sa.Column("maximum_after", sa.Double, nullable=True),
        sa.Column("steps_sha256", sa.String(64), nullable=False),
        sa.Column("undoes", sa.String(71), nullable=True),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("last_event", sa.Integer, nullable=False),
    )
    op.create_index("plan_summaries_by_snapshot", "plan_summaries", ["cluster", "snapshot", "recorded_at_ms"])
    op.create_index("plan_summaries_by_event", "plan_summaries", ["cluster", "last_event"])
    connection = op.get_bind()
    tables = sa.MetaData()
    tables.reflect(connection, only=["plans", "events"])
    plans, events = tables.tables["plans"], tables.tables["events"]
    last_events = sa.select(events.c.digest, sa.func.max(events.c.id)).group_by(events.c.digest)
    last_event = {row[0]: row[1] for row in connection.execute(last_events)}
    for digest in connection.scalars(sa.select(plans.c.digest)).all():  # one document in memory at a time
        plan = connection.execute(sa.select(plans).where(plans.c.digest == digest)).mappings().one()
        kept = {name: plan[name] for name in ("digest", "cluster", "snapshot", "recorded_at_ms")}
        row = {**kept, **vars(summary_of(plan["document"])), "last_event": last_event.get(digest, 0)}
        connection.execute(sa.insert(summaries).values(row))
