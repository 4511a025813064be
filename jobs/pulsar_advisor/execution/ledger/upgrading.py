"""Makes a ledger's tables those of this release: the only module that loads Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from pulsar_advisor.execution.ledger import migrations
from pulsar_advisor.execution.ledger.address import without_secrets
from pulsar_advisor.model.errors import StorageError


def upgrade(connection: Connection) -> None:
    """Run the missing revisions. Raises `StorageError` if the ledger has one that this release doesn't know."""
    try:
        command.upgrade(revisions(connection), "head")
    except CommandError as error:
        place = without_secrets(connection.engine.url)
        raise StorageError(
            f"ledger {place} was written by a newer release ({error}): use that release, or restore the ledger's backup"
        ) from error


def revisions(connection: Connection) -> Config:
    """Alembic's configuration to run the revisions on a connection."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
