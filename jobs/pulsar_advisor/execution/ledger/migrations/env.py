"""Alembic's entry: runs the revisions on the connection that `open_ledger` hands over."""

from alembic import context

from pulsar_advisor.execution.ledger.tables import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
context.run_migrations()
