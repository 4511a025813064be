"""The results of `verify`, per bundle and broker, to calibrate predictions over many runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pulsar_advisor.execution.ledger.triggers import TABLES_SINCE_0006, Dialect, triggers

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables and their triggers."""
    op.create_table(
        "verifications",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("snapshot", sa.String(16), nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("usage_judged", sa.Boolean, nullable=False),
        sa.Column("as_predicted", sa.Boolean, nullable=False),
        sa.UniqueConstraint("run_id", "snapshot", name="verifications_once_per_snapshot"),
    )
    op.create_table(
        "verified_bundles",
        sa.Column("id", sa.Integer, primary_key=True),
        _of_a_verification(),
        sa.Column("bundle", sa.Text, nullable=False),
        sa.Column("predicted", sa.String(200), nullable=True),
        sa.Column("actual", sa.String(200), nullable=True),
        sa.Column("as_predicted", sa.Boolean, nullable=False),
    )
    figures = (("msg_rate_per_s", sa.Double), ("throughput_bytes_per_s", sa.Double), ("bundles", sa.Integer))
    op.create_table(
        "verified_brokers",
        sa.Column("id", sa.Integer, primary_key=True),
        _of_a_verification(),
        sa.Column("broker", sa.String(200), nullable=False),
        *(sa.Column(f"{when}_usage_ratio", sa.Double, nullable=True) for when in ("before", "predicted", "actual")),
        *(
            sa.Column(f"{when}_{figure}", kind, nullable=True)
            for figure, kind in figures
            for when in ("predicted", "actual")
        ),
        sa.Column("as_predicted", sa.Boolean, nullable=False),
    )
    dialect: Dialect = "sqlite" if op.get_bind().dialect.name == "sqlite" else "postgresql"
    for table in TABLES_SINCE_0006:
        for trigger in triggers(table, dialect):
            op.execute(trigger.create(dialect))


def _of_a_verification() -> sa.Column[int]:
    return sa.Column("verification_id", sa.Integer, sa.ForeignKey("verifications.id"), nullable=False, index=True)
