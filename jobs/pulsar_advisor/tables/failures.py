"""Translates errors that Java or a storage system raised into the advisor's own."""

from __future__ import annotations

import sys

from pulsar_advisor.model.errors import AdvisorError
from pulsar_advisor.storage.files import refused_by_storage


def reported(error: Exception) -> AdvisorError | None:
    """The error to report: the given one if it is the advisor's own, or None for an unknown one."""
    if isinstance(error, AdvisorError):
        return error
    if "pulsar_advisor.tables.session" in sys.modules:  # it loads Spark
        from pulsar_advisor.tables.session import ended_java

        if (java := ended_java(error)) is not None:
            return java
    if isinstance(error, OSError) and error.errno is not None:
        return refused_by_storage(error)
    return None
