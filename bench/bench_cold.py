"""A cold `run` of the recorded snapshot beside a bare Spark session: `bench_cold.py [TURNS]`.

By turns; processor seconds of Python, Java and every child process.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from typing import Final

from bench_capture import watched
from bench_run import COMMAND, DEMO

from results import RESULTS, conditions, record

BARE: Final = """
from pyspark.sql import SparkSession
with SparkSession.builder.master("local[2]").getOrCreate() as spark:
    spark.range(1000).selectExpr("sum(id)").collect()
"""


def main(turns: int) -> None:
    """Print the seconds of each turn, and the ratio of their medians."""
    taken: dict[str, list[float]] = {"bare": [], "run": []}
    for turn in range(turns + 1):
        with tempfile.TemporaryDirectory() as folder:
            place = ["--root", folder, "--cluster", "demo", "--from-archive", str(DEMO)]
            run = [str(COMMAND), "run", *place, "--shedder", "all", "--placement", "all", "--splits"]
            for name, command in (("bare", [sys.executable, "-c", BARE]), ("run", run)):
                cost, _ = watched(command)
                print(f"{name:<5}{cost.seconds:>7.1f} s {cost.processor_s:>7.1f} processor s", flush=True)
                if turn:  # the first one finds the files on disk
                    taken[name].append(cost.processor_s)
    bare, cold = (statistics.median(taken[name]) for name in ("bare", "run"))
    print(f"{cold / bare:.2f} times")
    rows = {"a bare Spark session that adds a thousand numbers": bare, "a cold `run` of the recorded snapshot": cold}
    record(
        RESULTS / "waiting-times.tsv",
        [{"work": work, "processor s": f"{used:.1f}", **conditions()} for work, used in rows.items()],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
