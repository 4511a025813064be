"""Alembic revisions of the ledger, applied when it is opened."""

from typing import Final

HEAD: Final = "0009"
"""The newest one. Asking Alembic would load it (0.1 s) for every command that looks into a ledger."""
