from __future__ import annotations

import errno

import pyspark
import pytest

from pulsar_advisor.model.errors import AdvisorError, Refused, StorageError, UsageError
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


def test_a_cluster_of_another_spark_is_named_with_the_one_it_takes() -> None:
    message = (
        "An error occurred while calling o80.localCheckpoint.\n: org.apache.spark.SparkException: Job aborted due to "
        "stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: Lost task 0.3 in stage 0.0 (TID 3) "
        "(10.0.0.7 executor 0): java.io.InvalidClassException: "
        "org.apache.spark.sql.execution.datasources.FilePartition; local class incompatible: stream classdesc "
        "serialVersionUID = -5521658, local class serialVersionUID = 73\n\tat java.base/java.io"
    )
    found = reported(RuntimeError(message))
    assert isinstance(found, UsageError)
    assert str(found).startswith(f"this job runs on Spark {pyspark.__version__}, the cluster's executors on another")


def test_a_master_that_does_not_answer_may_answer_the_next_try() -> None:
    found = reported(
        RuntimeError(
            "An error occurred while calling None.org.apache.spark.sql.classic.SparkSession.\n: "
            "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
            "This stopped SparkContext was created at:\n\norg.apache.spark.api.java.JavaSparkContext.<init>"
        )
    )
    assert found is not None and found.exit_code == AdvisorError.exit_code
    assert str(found).startswith("Spark ended before the job did, and what it wrote above says more; a master that")


def test_a_full_folder_for_temporary_files_is_not_taken_for_a_file_that_is_not_there() -> None:
    message = (
        "An error occurred while calling o141.localCheckpoint.\n: org.apache.spark.SparkException: "
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///root/topics.zst.  SQLSTATE: KD001\n"
        "\tat org.apache.spark\nCaused by: java.lang.reflect.InvocationTargetException\n\tat java.base\n"
        "Caused by: java.lang.ExceptionInInitializerError: Cannot unpack libzstd-jni-1.5.7-6: No space left on device\n"
        "\tat com.github.luben.zstd\n"
    )
    assert str(reported(RuntimeError(message))) == (
        "Spark's Java can't write into its folder for temporary files: No space left on device: make room there, or "
        "set TMPDIR to another"
    )


TABLE = "file:/root/tables/topics/cluster=test/snapshot=20261121T083000Z"
CALLED = "An error occurred while calling o78.parquet.\n: org.apache.spark.SparkException: "
NO_ROOM = "java.io.IOException: No space left on device"


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (
            f"[TASK_WRITE_FAILED] Task failed while writing rows to {TABLE}. SQLSTATE: 58030\n\tat org.apache.spark\n"
            f"Caused by: org.apache.hadoop.fs.FSError: {NO_ROOM}\n\tat org\nCaused by: {NO_ROOM}\n\t... 37 more\n",
            "No space left on device",
        ),
        (
            "Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times, most recent failure: Lost task 0.0 "
            f"in stage 2.0: java.io.IOException: Mkdirs failed to create {TABLE}/_temporary/0/_temporary/attempt_2 "
            "(exists=false, cwd=file:/)\n\tat org.apache.hadoop",
            "Spark can't make it or replace it",
        ),
        (f"Unable to clear output directory {TABLE} prior to writing to it.", "Spark can't make it or replace it"),
    ],
    ids=["a full disk", "a closed folder", "another user's table"],
)
def test_a_table_that_spark_can_not_write_is_named(message: str, why: str) -> None:
    found = reported(RuntimeError(CALLED + message))
    assert isinstance(found, StorageError)
    assert str(found).startswith(f"can't read or write {TABLE}: {why}: check space, permissions and quota")


def test_a_fault_of_ours_in_what_spark_writes_is_not_blamed_on_the_disk() -> None:
    overflow = (
        f"{CALLED}[TASK_WRITE_FAILED] Task failed while writing rows to {TABLE}. SQLSTATE: 58030\n\tat org\n"
        "Caused by: org.apache.spark.SparkArithmeticException: [ARITHMETIC_OVERFLOW] long overflow"
    )
    assert reported(RuntimeError(overflow)) is None


@pytest.mark.parametrize("error", [ValueError("odd"), OSError("raised by a library, for no call of the system")])
def test_nothing_is_known_of_what_a_library_raises(error: Exception) -> None:
    assert reported(error) is None
