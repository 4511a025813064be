"""What every Spark job does around its one call: arguments, a session, one line for a failure, an exit code."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from pyspark.sql import SparkSession

from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.storage.files import refused_by_storage
from pulsar_advisor.storage.lease import Held
from pulsar_advisor.storage.root import Root, Snapshot
from pulsar_advisor.tables.failures import reported
from pulsar_advisor.tables.session import spark_session
from pulsar_advisor.tables.snapshot_size import raw_bytes

Stage = Callable[[SparkSession, Snapshot], Any]
Answer = TypeVar("Answer")

HOLDER_POLL_S: Final = 10.0


def run_job(name: str, stage: Stage, arguments: Sequence[str] | None = None) -> int:
    """Run one stage for `--root --cluster --snapshot`; returns the exit code.

    0 once the result file is written, whatever it says. While another process writes it, the job waits: otherwise a
    scheduler that restarts a lost job in a new container would run out of retries before the old lease expires. The
    master is `spark-submit`'s, or `--master`; with `--remote` the job needs no `spark-submit`.
    """
    parser = argparse.ArgumentParser(prog=name, description=stage.__doc__ and stage.__doc__.splitlines()[0])
    parser.add_argument("--root", required=True, help="a path or an object-store URL")
    parser.add_argument("--cluster", required=True, help="the cluster's name in paths")
    parser.add_argument("--snapshot", required=True, help="snapshot id")
    parser.add_argument(
        "--master",
        "--remote",
        help="Spark master, or sc://HOST:PORT of a Spark Connect server; default: the master spark-submit was given",
    )
    options = parser.parse_args(arguments)

    def made() -> None:
        snapshot = Root(options.root, options.cluster).resolve(options.snapshot)
        spark = spark_session(options.master, name, raw_bytes=raw_bytes(snapshot))
        try:
            once_free(name, lambda: stage(spark, snapshot))
        finally:
            spark.stop()

    return exit_code_of(name, made)


def exit_code_of(name: str, work: Callable[[], Any]) -> int:
    """Do the work of a job, logging to stderr; returns 0, or the exit code of an error, which is one line on stderr."""
    _log_stages(name)
    try:
        work()
    except Exception as error:
        known = reported(error)
        if known is None and isinstance(error, OSError):  # object stores' clients may leave out `errno`
            known = refused_by_storage(error)
        if known is None:
            raise
        sys.stderr.write(f"{name}: {plain(str(known))}\n")
        return known.exit_code
    return 0


def _log_stages(name: str) -> None:
    """Write the stages' log to stderr, but only warnings of the libraries, which are verbose."""
    logging.basicConfig(format=f"{name}: %(message)s")
    logging.getLogger("pulsar_advisor").setLevel(logging.INFO)


def once_free(name: str, work: Callable[[], Answer]) -> Answer:
    """The answer of some work, which is done as soon as no other process holds its folder."""
    is_waiting = False
    while True:
        try:
            return work()
        except Held as held:
            if not is_waiting:
                sys.stderr.write(f"{name}: waiting, because {plain(str(held))}\n")
                is_waiting = True
            time.sleep(HOLDER_POLL_S)
