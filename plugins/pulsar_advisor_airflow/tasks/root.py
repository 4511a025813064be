"""What the tasks share about a cluster's root: where it is, and which of its results may be used."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor_airflow.configuration import option
from pulsar_advisor_airflow.failures import as_airflow_errors, root_at
from pulsar_advisor_airflow.ledger import opened_ledger

if TYPE_CHECKING:
    from pulsar_advisor.storage.root import Root, Snapshot

log = logging.getLogger(__name__)


def root_of(cluster: str) -> Root:
    """The root of this installation, for one of its clusters."""
    with as_airflow_errors():
        return root_at(option("root"), cluster)


def require_sealed(snapshot: Snapshot, stage: str) -> None:
    """Raise `Refused` if a stage's result for a snapshot isn't as the ledger sealed it; log if it wasn't sealed."""
    from pulsar_advisor.stages.seal import require_as_sealed

    try:
        with opened_ledger(snapshot.root) as ledger:
            why_not = require_as_sealed(ledger, snapshot, stage)
    except UsageError as error:  # an object store without a ledger
        why_not = str(error)
    if why_not:
        log.warning("%s: only a person can approve a plan of it", why_not)


def is_newest_advised(snapshot: Snapshot) -> bool:
    """Whether metrics and messages may show a snapshot: a form may name one older than the last recommended on."""
    from pulsar_advisor.storage.index import newest_advised

    return snapshot.id >= (newest_advised(snapshot.root, datetime.now(UTC)) or "")
