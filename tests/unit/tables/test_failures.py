from __future__ import annotations

import errno

import pytest

from pulsar_advisor.model.errors import Refused, StorageError
from pulsar_advisor.tables.failures import reported


def test_an_error_of_the_advisor_is_reported_as_it_is() -> None:
    refused = Refused("another plan is applied")
    assert reported(refused) is refused


def test_what_a_storage_system_refused_is_named() -> None:
    found = reported(OSError(errno.ENOSPC, "No space left on device", "root/raw"))
    assert isinstance(found, StorageError)
    assert "can't read or write root/raw: No space left on device" in str(found)


def test_a_file_that_executors_do_not_see_is_named_with_what_they_need() -> None:
    found = reported(
        RuntimeError(
            "An error occurred while calling o80.collectToPython.\n: org.apache.spark.SparkException: "
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///root/raw/topics.zst. "
            "File does not exist. It is possible the underlying files have been updated.\n\tat org.apache.spark"
        )
    )
    assert isinstance(found, StorageError)
    assert str(found).startswith("Spark can't read file:///root/raw/topics.zst: the root must be at the same path")


@pytest.mark.parametrize("error", [ValueError("odd"), OSError("raised by a library, for no call of the system")])
def test_nothing_is_known_of_what_a_library_raises(error: Exception) -> None:
    assert reported(error) is None
