"""Identifies the process that holds a run; holders from earlier releases are unknown, so their leases must expire."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("runs", sa.Column("process_namespace", sa.String(200), nullable=False, server_default=""))
    op.add_column("runs", sa.Column("process_began", sa.String(40), nullable=False, server_default=""))
