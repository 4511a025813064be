"""An index of the few guard events: pages look them up among millions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_OF_GUARDS = sa.text("kind IN ('switched off', 'switched back')")


def upgrade() -> None:
    """Add the index."""
    op.create_index("events_of_guards", "events", ["run_id"], sqlite_where=_OF_GUARDS, postgresql_where=_OF_GUARDS)
