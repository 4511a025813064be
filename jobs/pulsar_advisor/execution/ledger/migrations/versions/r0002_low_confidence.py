"""Whether an approval accepts steps of low confidence; earlier approvals did not record it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column(
        "approvals", sa.Column("accepts_low_confidence", sa.Boolean, nullable=False, server_default=sa.false())
    )
