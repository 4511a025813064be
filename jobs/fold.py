"""spark-submit entry point of `history fold` for many days and clusters: snapshots' tables in, folded days out."""

import argparse
import sys
from datetime import UTC, datetime

from pulsar_advisor.model.cluster.snapshot_id import require_day
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.stages.fold_all import run
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.job import exit_code_of
from pulsar_advisor.tables.session import spark_session


def main() -> int:
    """Fold every day before today; returns 0, or the exit code of the first day that couldn't be folded."""
    parser = argparse.ArgumentParser(prog="fold", description=run.__doc__ and run.__doc__.splitlines()[0])
    parser.add_argument("--root", required=True, help="a path or an object-store URL")
    parser.add_argument("--cluster", action="append", help="a cluster's name in paths; repeatable; default: all")
    parser.add_argument(
        "--before", default=f"{datetime.now(UTC):%Y%m%d}", help="the first day left out; default: today"
    )
    parser.add_argument("--ledger", help="its address, for executors too; default: SQLite in a local root")
    parser.add_argument("--master", "--remote", help="Spark master; default: the one spark-submit was given")
    options = parser.parse_args()
    failed: list[int] = []

    def fold_all() -> None:
        clusters = options.cluster or Root(options.root, "any").clusters()
        roots = [Root(options.root, cluster) for cluster in clusters]
        before = require_day(options.before)
        spark = spark_session(options.master, "fold")
        try:
            for day in run(spark, roots, before, options.ledger):
                (sys.stderr if day.exit_code else sys.stdout).write(f"{day.cluster}: {plain(day.line)}\n")
                failed.extend([day.exit_code] if day.exit_code else [])
        finally:
            spark.stop()

    return exit_code_of("fold", fold_all) or next(iter(failed), 0)


if __name__ == "__main__":
    raise SystemExit(main())
