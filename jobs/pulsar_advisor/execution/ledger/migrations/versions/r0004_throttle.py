"""The throttle of a run is approved with the plan; earlier approvals have the defaults."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("approvals", sa.Column("throttle", sa.Text, nullable=True))
