"""Alembic revisions of the ledger, applied when it is opened."""
