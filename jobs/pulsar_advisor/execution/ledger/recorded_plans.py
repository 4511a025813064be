"""The plans that a ledger holds, in their written form, whichever version that is."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlalchemy import create_engine, select

from pulsar_advisor.execution.ledger.address import ledger_url
from pulsar_advisor.execution.ledger.ledger import named_errors
from pulsar_advisor.execution.ledger.tables import PlanRecord


def new_plans(url: str, cluster: str, known: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Digest, snapshot and document of each plan of a cluster whose digest isn't known yet.

    Raises `StorageError` if the ledger can't be read.
    """
    engine = create_engine(ledger_url(url))
    try:
        with named_errors(engine), engine.connect() as connection:
            of_cluster = PlanRecord.cluster == cluster
            for digest in set(connection.scalars(select(PlanRecord.digest).where(of_cluster))).difference(known):
                plan = select(PlanRecord.snapshot, PlanRecord.document).where(PlanRecord.digest == digest)
                row = connection.execute(plan).one()
                yield digest, row.snapshot, row.document
    finally:
        engine.dispose()
