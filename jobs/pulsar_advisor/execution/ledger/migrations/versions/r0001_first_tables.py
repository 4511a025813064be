"""The first tables: plans, proposals, approvals, runs, steps, events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_RUN_STATES = "state IN ('active', 'done', 'refused', 'stopped', 'aborted')"
_STEP_STATES = "state IN ('pending', 'sent', 'confirmed', 'failed', 'skipped', 'unresolved')"


def upgrade() -> None:
    """Create the tables, the one-active-run index and the trigger that keeps events append-only."""
    op.create_table(
        "plans",
        sa.Column("digest", sa.String(71), primary_key=True),
        sa.Column("cluster", sa.String(200), nullable=False),
        sa.Column("cluster_name", sa.String(200), nullable=False),
        sa.Column("snapshot", sa.String(16), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("recorded_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "proposals",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(71), sa.ForeignKey("plans.digest"), nullable=False, index=True),
        sa.Column("proposer", sa.String(200), nullable=False),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "approvals",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(71), sa.ForeignKey("plans.digest"), nullable=False, index=True),
        sa.Column("approver", sa.String(200), nullable=False),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("allows_splits", sa.Boolean, nullable=False),
        sa.Column("accepts_worse", sa.Boolean, nullable=False),
        sa.Column("withdrawn_at_ms", sa.BigInteger, nullable=True),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(71), sa.ForeignKey("plans.digest"), nullable=False, index=True),
        sa.Column("cluster_name", sa.String(200), nullable=False),
        sa.Column("approval_id", sa.Integer, sa.ForeignKey("approvals.id"), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("lease", sa.Integer, nullable=False),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("heartbeat_at_ms", sa.BigInteger, nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger, nullable=True),
        sa.Column("sentence", sa.Text, nullable=False),
        sa.Column("undo_plan", sa.Text, nullable=False),
        sa.CheckConstraint(_RUN_STATES, name="runs_state"),
    )
    active = sa.text("state = 'active'")
    op.create_index(
        "runs_one_active_per_cluster",
        "runs",
        ["cluster_name"],
        unique=True,
        sqlite_where=active,
        postgresql_where=active,
    )
    op.create_table(
        "steps",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("step_id", sa.String(200), nullable=False),
        sa.Column("bundle", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("sent_at_ms", sa.BigInteger, nullable=True),
        sa.Column("ended_at_ms", sa.BigInteger, nullable=True),
        sa.Column("topic", sa.Text, nullable=True),
        sa.Column("observation", sa.Text, nullable=False),
        sa.CheckConstraint(_STEP_STATES, name="steps_state"),
        sa.UniqueConstraint("run_id", "step_id", name="steps_once_per_run"),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String(71), nullable=False, index=True),
        sa.Column("run_id", sa.Integer, nullable=True),
        sa.Column("step_id", sa.String(200), nullable=True),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER events_no_{change.lower()} BEFORE {change} ON events "
                "BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END"
            )
    else:
        op.execute(
            "CREATE FUNCTION events_only_added() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'events are only ever added'; END $$"
        )
        op.execute(
            "CREATE TRIGGER events_only_added BEFORE UPDATE OR DELETE ON events "
            "FOR EACH ROW EXECUTE FUNCTION events_only_added()"
        )
