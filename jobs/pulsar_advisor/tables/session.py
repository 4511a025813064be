"""The Spark session of every stage: quick to start on one machine, unchanged on a cluster."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from pulsar_advisor.tables.class_archive import class_archive_options

_QUIET: Final = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"

_FRUGAL: Final = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=512m -Xms1g"
"""Heap and metaspace start at the size a run needs: growing them triggers a full collection each time."""
_QUICK_START: Final = "-XX:TieredStopAtLevel=1"
"""Disables Java's slow compiler, which a short job never earns back; on a Spark cluster, Java's default applies."""

_LONG_JOB_BYTES: Final = 200 << 20
"""Of a snapshot's raw files. Ten million topics (800 MB) take nearly twice the processor time without that compiler."""

_SMALL_SNAPSHOT_BYTES: Final = 4 << 20
"""Of a snapshot's raw files, about fifty thousand topics. Up to it, compiling a query costs more than running it."""

_EVERYWHERE: Final[dict[str, Any]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": False,
    # Otherwise every call of a column's method looks up the calling line and passes it to Java.
    "spark.python.sql.dataFrameDebugging.enabled": False,
    # The statistics of cached columns ignore NaN, so `x > limit` skips a batch that contains one (seen in 4.1.3);
    # Great Expectations caches its input.
    "spark.sql.inMemoryColumnarStorage.partitionPruning": False,
}

_LOCAL: Final[dict[str, Any]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.ui.enabled": False,
    "spark.sql.shuffle.partitions": 8,
    # Measuring every exchange before planning the next one costs more than it saves without a network.
    "spark.sql.adaptive.enabled": False,
    "spark.sql.catalogImplementation": "in-memory",
}

_SMALL: Final[dict[str, Any]] = {
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Rows in a single partition are joined and grouped in place: no exchange, no broadcast, one task.
    "spark.sql.shuffle.partitions": 1,
    "spark.sql.autoBroadcastJoinThreshold": -1,
}


def spark_session(master: str | None = "local[*]", name: str = "pulsar-advisor", *, raw_bytes: int = 0) -> SparkSession:
    """The session of this process, started if necessary. `raw_bytes`: size of the snapshot it is for.

    `master=None` leaves the choice to `spark-submit`, and its `--conf` values are kept. On a local master
    everything stays on the loopback interface.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = SparkContext.getSystemProperty if master is None else lambda _key: None
    master = master or submitted("spark.master")
    builder = SparkSession.builder.appName(name)
    settings = dict(_EVERYWHERE)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            java = [_FRUGAL, _QUIET, class_archive_options()]
            if raw_bytes < _LONG_JOB_BYTES:
                java.append(_QUICK_START)
            settings |= {**_LOCAL, "spark.driver.extraJavaOptions": " ".join(java)}
            if raw_bytes < _SMALL_SNAPSHOT_BYTES:
                settings |= _SMALL
    for key, value in settings.items():
        if submitted(key) is None:
            builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)
    logging.getLogger().addFilter(_is_no_interrupted_call)
    for context in ("SQL", "DataFrame"):
        # Spark's Python side logs every failed query as JSON; the exception says the same.
        logging.getLogger(f"{context}QueryContextLogger").setLevel(logging.CRITICAL)
    return session


def _interrupt(number: int, frame: FrameType | None) -> None:
    """On Ctrl-C, end the process as Python does, together with its Spark jobs.

    PySpark's own handler asks Java to cancel them over the connection that was interrupted in the middle of a call,
    which fails; a separate thread has a separate connection.
    """
    context = SparkContext._active_spark_context
    if context is not None:
        threading.Thread(target=context.cancelAllJobs, daemon=True).start()
    signal.default_int_handler(number, frame)


def _is_no_interrupted_call(record: logging.LogRecord) -> bool:
    """Py4J logs an interruption with its stack trace, and also raises it."""
    return record.msg != "KeyboardInterrupt while sending command."
