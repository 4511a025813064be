"""The Spark session of every stage: quick to start on one machine, unchanged on a cluster."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

from py4j.java_gateway import JavaClass, JavaMember
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pulsar_advisor.model.errors import JavaEnded, UsageError
from pulsar_advisor.tables.background import in_background
from pulsar_advisor.tables.class_archive import class_archive_options
from pulsar_advisor.tables.frames import has_one_partition
from pulsar_advisor.tables.own_spark import choose_own_spark, require_startable, temporary_folder_option
from pulsar_advisor.tables.snapshot_size import is_small

CONNECT: Final = "sc://"
"""Prefix of a Spark Connect server's address."""
_MASTERS: Final = ("local", "spark://", "k8s://", "yarn")
"""Prefixes of the masters that Spark's own submission knows."""

_QUIET: Final = f'-Dlog4j2.configurationFile="{Path(__file__).with_name("log4j2.properties")}"'

_IN_ENGLISH: Final = "-Duser.language=en -Duser.country=US"
"""Java numbers the files that Spark writes in the digits of its locale, which other machines may not be able to name.
"""

_FRUGAL: Final = (
    "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=512m -Xms1g -XX:-DontCompileHugeMethods"
)
"""Heap and metaspace start at the size a run needs: growing them triggers a full collection each time. By default Java
only interprets methods of more than 8,000 bytes, which Spark generates for joins of wide rows.
"""
_QUICK_START: Final = "-XX:TieredStopAtLevel=1"
"""Disables Java's slow compiler, which a short job never earns back; on a Spark cluster, Java's default applies."""

_HOT_CODE: Final = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Ten times Java's thresholds for that compiler: half of what it would compile doesn't pay off within a run."""

_LONG_JOB_BYTES: Final = 16 << 20
"""Size of a snapshot's raw files with about half a million topics. From here on that compiler saves more time than it
takes, if the files themselves are read.
"""

_READING_RAW: Final = ("normalize", "run", "snapshot", "verify")
"""The stages, commands and jobs that read raw files."""

_LARGE_HEAP_BYTES: Final = 80 << 20
"""Size of a snapshot's raw files from which the whole heap is needed: more than two million topics."""

_NAMES_OF_JOBS: Final = ("callSite.short", "callSite.long")
"""Thread properties: the name of its jobs in Spark's lists, and on their pages."""

Setting = str | int | bool

_SESSION_SETTINGS: Final[dict[str, Setting]] = {
    # Without ANSI mode, as on clusters that came from Spark 3, a missing list has the size -1.
    "spark.sql.ansi.enabled": True,
    "spark.sql.session.timeZone": "UTC",
    # The statistics of cached columns ignore NaN, so `x > limit` skips a batch that contains one (seen in 4.1.3);
    # Great Expectations caches its input.
    "spark.sql.inMemoryColumnarStorage.partitionPruning": False,
    # ICU, the Unicode library, first lists the title case of all characters (0.7 s); Java's own code doesn't.
    "spark.sql.icu.caseMappings.enabled": False,
}
"""Settings of every session, also where a cluster has others; on a server, each session has its own."""

_OF_APPLICATION: Final[dict[str, Setting]] = {
    "spark.ui.showConsoleProgress": False,
    # Otherwise every call of a column's method looks up the calling line and passes it to Java.
    "spark.python.sql.dataFrameDebugging.enabled": False,
}

_LOCAL: Final[dict[str, Setting]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.ui.enabled": False,
    "spark.sql.shuffle.partitions": 8,
    # Measuring every exchange before planning the next one costs more than it saves without a network.
    "spark.sql.adaptive.enabled": False,
    "spark.sql.catalogImplementation": "in-memory",
}

_SMALL_HEAP: Final[dict[str, Setting]] = {"spark.driver.memory": "2500m"}
"""Java fills its heap before it collects garbage."""

_SMALL: Final[dict[str, Setting]] = {
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Rows in a single partition are joined and grouped in place: no exchange, no broadcast, one task.
    "spark.sql.shuffle.partitions": 1,
    "spark.sql.autoBroadcastJoinThreshold": -1,
}


_INCUBATOR_WARNING: Final = b"WARNING: Using incubator modules"
"""Spark starts Java with a module that makes it warn; no Java option turns that off."""

_EXIT_TIMEOUT_S: Final = 5.0
"""How long a failing Java may take to say why, and to end."""

_CLASSES: Final = (
    "functions",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.types.Metadata",
    "PythonUtils",
    "PythonSQLUtils",
)
"""Spark classes that PySpark names thousands of times in a run. Each time, Py4J asks Java, which searches its packages
and jars for them (0.3 to 1.5 ms).
"""


class _KnownClass(JavaClass):  # type: ignore[misc]  # Py4J has no types
    """A class whose static methods are looked up once: Java searches all of them, 800 in `functions`, for each name."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = member
        return member


def spark_session(master: str | None = "local[*]", work: str = "run", *, raw_bytes: int = 0) -> SparkSession:
    """The session of this process, started if necessary. `work`: the stage, command or job; `raw_bytes`: size of the
    snapshot it is for.

    `sc://HOST:PORT` is a Spark Connect server, whose Java is running already. `master=None` leaves the choice to
    `spark-submit`, and its `--conf` values are kept, except for those of `_SESSION_SETTINGS`. On a local master
    everything stays on the loopback interface.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = SparkContext.getSystemProperty if master is None else lambda _key: None
    if master is not None:
        choose_own_spark(os.environ, master, utf8_mode=bool(sys.flags.utf8_mode))
    master = master or submitted("spark.master")
    if master is not None and master.startswith(CONNECT):
        return _connected(master, raw_bytes)
    if master is not None and not master.startswith(_MASTERS):
        raise UsageError(
            f"'{master}' is not a Spark master: give local[*], local[4], spark://HOST:PORT, k8s://HOST:PORT or "
            "yarn, or sc://HOST:PORT of a Spark Connect server"
        )
    builder = SparkSession.builder.appName(f"pulsar-advisor {work}")
    settings = _SESSION_SETTINGS | _OF_APPLICATION
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            is_long = work in _READING_RAW and raw_bytes >= _LONG_JOB_BYTES
            settings |= _local(_HOT_CODE if is_long else _QUICK_START)
            if raw_bytes < _LARGE_HEAP_BYTES:
                settings |= _SMALL_HEAP
            if is_small(raw_bytes):
                settings |= _SMALL
    for key, value in settings.items():
        if key in _SESSION_SETTINGS or submitted(key) is None:
            builder = builder.config(key, value)
    for logger in ("root", "py4j.clientserver"):
        logging.getLogger(logger).addFilter(_is_no_failed_call)

    def started() -> SparkSession:
        if master is not None and SparkContext._gateway is None:
            _start_java(settings | {"spark.master": master})
        return builder.getOrCreate()

    # If Ctrl-C interrupts PySpark's own start, it leaves a Java behind, or calls Java within the interrupted call.
    session = in_background(started).result()
    java: Any = session._jvm
    for name in _CLASSES:
        found = getattr(java, name)
        setattr(java, name, _KnownClass(found._fqn, found._gateway_client))  # found there before Py4J asks Java
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a roll ends after its moves
        signal.signal(signal.SIGINT, _interrupt)
    for context in ("SQL", "DataFrame"):
        # Spark's Python side logs every failed query as JSON; the exception says the same.
        logging.getLogger(f"{context}QueryContextLogger").setLevel(logging.CRITICAL)
    return session


def _start_java(settings: Mapping[str, Setting]) -> None:
    """Start the Java that the session will use; its stderr goes to ours, except the warning it always writes.

    Raises `UsageError` if it doesn't start.
    """
    require_startable(os.environ)
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, str(value).lower() if isinstance(value, bool) else str(value))
    reader, writer = os.pipe()
    passing = threading.Thread(target=_pass_on, args=(reader,), daemon=True)
    passing.start()
    try:
        with os.fdopen(writer, "wb") as stderr:
            SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"stderr": stderr}))
    except PySparkRuntimeError as error:
        passing.join(_EXIT_TIMEOUT_S)  # they hold the reason
        raise UsageError(
            "Java did not start (its output is above): Spark needs Java 17 or newer, on PATH or in JAVA_HOME, and "
            "memory for its heap"
        ) from error


def ended_java(error: Exception) -> JavaEnded | None:
    """The error to report instead of one that the end of Spark's Java has caused; None if that Java runs."""
    java = getattr(SparkContext._gateway, "proc", None)
    if java is None:
        return None
    is_lost = isinstance(error, (ConnectionError, Py4JError)) and not isinstance(error, Py4JJavaError)
    try:
        code = java.wait(_EXIT_TIMEOUT_S if is_lost else 0)
    except subprocess.TimeoutExpired:
        return None
    if code < 0:
        why = f"was killed ({signal.Signals(-code).name}), as by a system out of memory"
    else:
        why = f"ended with exit code {code}"
    return JavaEnded(f"Spark's Java process {why}: make sure it has enough memory, then try again")


def _pass_on(reader: int) -> None:
    with os.fdopen(reader, "rb") as lines, suppress(OSError, ValueError):
        for line in lines:
            if not line.startswith(_INCUBATOR_WARNING):
                sys.stderr.write(line.decode(errors="replace"))
                sys.stderr.flush()


def session_for_few_rows(spark: SparkSession) -> SparkSession:
    """A session of the same Spark for frames of at most some ten thousand rows, with the settings of small snapshots.

    It is the same session if that has these settings already, or is a server's, which has compiled these queries
    before.
    """
    if has_one_partition(spark) or not hasattr(spark, "newSession"):
        return spark
    session = spark.newSession()
    for key, value in ({key: spark.conf.get(key) for key in _SESSION_SETTINGS} | _SMALL).items():
        session.conf.set(key, value)
    return session


@contextmanager
def jobs_named(spark: SparkSession, work: str) -> Iterator[None]:
    """Name this thread's jobs in Spark's UI after their work, until the block collects rows; not on a server.

    Without a name, Spark walks the thread's stack at each operator of each query, a fiftieth of Java's work for a small
    snapshot, only to find Py4J's calling line.
    """
    if not hasattr(spark, "newSession"):
        yield
        return
    for name in _NAMES_OF_JOBS:
        spark.sparkContext.setLocalProperty(name, work)
    try:
        yield
    finally:
        for name in _NAMES_OF_JOBS:
            spark.sparkContext.setLocalProperty(name, None)


def _local(java_options: str) -> dict[str, Setting]:
    """The settings of a Spark that runs in one process on this machine."""
    options = (_FRUGAL, _QUIET, _IN_ENGLISH, temporary_folder_option(os.environ), class_archive_options(), java_options)
    java = " ".join(filter(None, options))
    umask = os.umask(0o077)  # it can only be asked for by setting it
    os.umask(umask)
    # By itself, Hadoop opens every file to all readers and no other writer.
    permissions = {"spark.hadoop.fs.permissions.umask-mode": f"{umask:03o}"}
    return {**_LOCAL, **permissions, "spark.driver.extraJavaOptions": java}


def server_settings(port: int) -> dict[str, Setting]:
    """The settings of a Spark Connect server on loopback, at this port; it lives long enough for Java's compilers."""
    address: dict[str, Setting] = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
    }
    return {**_OF_APPLICATION, **_local(""), **address}


def _connected(url: str, raw_bytes: int) -> SparkSession:
    """A session on a server. Raises `UsageError` if there is none at this address."""
    settings = _SESSION_SETTINGS | (_SMALL if is_small(raw_bytes) else {})
    builder = SparkSession.builder.remote(url)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session: SparkSession = builder.getOrCreate()
        session.version  # noqa: B018
    except PySparkException as error:
        raise UsageError(f"no Spark Connect server at {url}: {str(error).splitlines()[0]}; start one first") from error
    atexit.register(_leave, session)
    return session


def _leave(session: SparkSession) -> None:
    """End a session on a server, which would keep its rows in memory for an hour."""
    session.client.set_retry_policies([])  # PySpark calls a server that is gone for ten minutes
    session.stop()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """On Ctrl-C, end the process as Python does, together with its Spark jobs.

    PySpark's own handler asks Java to cancel them over the connection that was interrupted in the middle of a call,
    which fails; a separate thread has a separate connection.
    """
    context = SparkContext._active_spark_context
    if context is not None:
        threading.Thread(target=context.cancelAllJobs, daemon=True).start()
    signal.default_int_handler(number, frame)


def _is_no_failed_call(record: logging.LogRecord) -> bool:
    """Py4J logs an interruption, and the end of Java, with a stack trace, and also raises it."""
    return record.msg not in (
        "KeyboardInterrupt while sending command.",
        "Exception while sending command.",
        "Exception occurred while shutting down connection",
    )
