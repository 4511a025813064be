"""Translates errors that Java or a storage system raised into the advisor's own."""

from __future__ import annotations

import errno
import re
import sys
from typing import Final

from pulsar_advisor.model.errors import AdvisorError, StorageError, UsageError
from pulsar_advisor.storage.files import refused_by_storage

_UNLOADED: Final = re.compile(r"ExceptionInInitializerError: Cannot unpack [^:\s]+: (?P<why>[^\n]+)")
"""Java's message for the library of compressed files, which it unpacks into its folder for temporary files."""

_OF_ANOTHER_SPARK: Final = re.compile(r"InvalidClassException: \S+; local class incompatible")
"""Java's message, on an executor, for an object that another release of Spark has sent."""

_NO_MASTER: Final = "Cannot call methods on a stopped SparkContext"
"""Spark's message where a master has given no answer in a minute, couldn't read the request, or ended the job."""

_UNREAD: Final = re.compile(r"\[FAILED_READ_FILE\.\w+\] .*? reading file (?P<file>\S+?)\.?\s")
"""Spark's message, the same from its Java and from a server, for a file that an executor can't read."""

_UNWRITTEN: Final = re.compile(
    r"(?:Mkdirs failed to create|Unable to clear output directory) (?P<closed>.+?)(?:/_temporary/| prior to )"
    r"|Task failed while writing rows to (?P<table>.+?)\. SQLSTATE"
    r".*\nCaused by: java\.io\.IOException: (?P<why>[^\n]+)",
    re.DOTALL,
)
"""Spark's messages for a table that it can't write: without a reason, or with that of the file system as last cause."""


def reported(error: Exception) -> AdvisorError | None:
    """The error to report: the given one if it is the advisor's own, or None for an unknown one."""
    if isinstance(error, AdvisorError):
        return error
    if "pulsar_advisor.tables.session" in sys.modules:  # it loads Spark
        from pulsar_advisor.tables.session import ended_java

        if (java := ended_java(error)) is not None:
            return java
    said = str(error)
    if (unloaded := _UNLOADED.search(said)) is not None:
        return StorageError(
            f"Spark's Java can't write into its folder for temporary files: {unloaded['why']}: make room there, or set "
            "TMPDIR to another"
        )
    if _OF_ANOTHER_SPARK.search(said):
        return UsageError(
            f"this job runs on Spark {_spark()}, the cluster's executors on another release: submit it to a cluster of "
            "the same minor release"
        )
    if _NO_MASTER in said:
        return AdvisorError(
            "Spark ended before the job did, and what it wrote above says more; a master that isn't local must be "
            f"reachable, and of the same minor release as this job's Spark, {_spark()}"
        )
    if (unread := _UNREAD.search(said)) is not None:
        return StorageError(
            f"Spark can't read {unread['file']}: the root must be at the same path on each machine where Spark has "
            "executors, or in an object store. If it is, the file was removed or damaged meanwhile: try again"
        )
    if (unwritten := _UNWRITTEN.search(said)) is not None:
        why = unwritten["why"] or "Spark can't make it or replace it"
        return refused_by_storage(OSError(errno.EIO, why, unwritten["closed"] or unwritten["table"]))
    if isinstance(error, OSError) and error.errno is not None:
        return refused_by_storage(error)
    return None


def _spark() -> str:
    """The release of Spark that raised an error."""
    import pyspark

    return str(pyspark.__version__)
