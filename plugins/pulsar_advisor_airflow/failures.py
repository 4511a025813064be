"""Translates the product's errors into Airflow's: errors that a retry can't fix fail at once, others may be retried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from pulsar_advisor.model.errors import AdvisorError

UNEXPECTED = AdvisorError.exit_code
"""Unreachable clusters and unwritable storage: the only errors that may resolve themselves."""


@contextmanager
def as_airflow_errors() -> Iterator[None]:
    """Raise `AirflowFailException` (never retried) for exit codes 2 to 5, `AirflowException` for the others."""
    try:
        yield
    except AdvisorError as error:
        kind = AirflowException if error.exit_code == UNEXPECTED else AirflowFailException
        raise kind(str(error)) from error
