"""Waiting times of `simulate`: `bench_grid.py [BROKERSxBUNDLESxTOPICS or ARCHIVE.tar]`, by default 100x10000x50000.

Ten cycles of every shedder with every placement strategy; then a grid of a thousand what-ifs of ThresholdShedder, on a
local Spark and on a standalone cluster with one worker, of two cores each. Processor seconds cover Python, Java and
every child process of the command; those of the standalone worker are counted separately.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_capture import Cost, processes, processor_seconds, watched, whole_capture
from bench_run import COMMAND, heading, show
from large_cluster import CLUSTER, LargeCluster, served

from harness.standalone_spark import SparkCluster, running_spark

MASTER = "local[2]"
GRID = {
    "loadBalancerBrokerThresholdShedderPercentage": range(1, 11),
    "loadBalancerHistoryResourcePercentage": [f"0.{tenths}" for tenths in range(10)],
    "loadBalancerSheddingGracePeriodMinutes": range(1, 11),
}
"""Ten values each."""


def main(what: str = "100x10000x50000") -> None:
    """Print a line per command."""
    print(f"Load {os.getloadavg()[0]:.1f}.")
    with tempfile.TemporaryDirectory() as folder:
        place = ["--root", folder, "--cluster", CLUSTER]
        if what.endswith(".tar"):
            done(["snapshots", "import", what, "--root", folder])
        else:
            with served(LargeCluster(*map(int, what.split("x")))) as broker:
                whole_capture(f"http://{broker}", folder)
        for verb in ("normalize", "validate"):
            done([verb, *place])
        heading()
        cycles = ["simulate", *place, "--cycles", "10"]
        grid = [*cycles, "--shedder", "ThresholdShedder", "--placement", "LeastLongTermMessageRate"]
        for key, values in GRID.items():
            grid += ["--grid", f"{key}={','.join(map(str, values))}"]
        name, local = Path(what).stem, ["--master", MASTER]
        show(f"`simulate`, ten cycles of all strategies, {name}", *watched([str(COMMAND), *cycles, *local]), "20")
        show(f"a grid of 1,000 what-ifs, {MASTER}", *watched([str(COMMAND), *grid, *local]), "-")
        with running_spark(Path(folder), memory="4g") as spark:
            before = used(spark)
            cost, peak = watched([str(COMMAND), *grid, "--master", spark.master])
            show("the same on a standalone cluster: the driver", cost, peak, "-")
            show("its master, worker and executor", Cost(cost.seconds, used(spark) - before), 0, "-")


def done(arguments: list[str]) -> None:
    """Run a command that is not measured."""
    subprocess.run([COMMAND, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def used(spark: SparkCluster) -> float:
    """Processor seconds of a cluster's processes and their descendants, those that have ended included."""
    return sum(processor_seconds(pid) for daemon in spark.daemons for pid in processes(daemon.pid))


if __name__ == "__main__":
    main(*sys.argv[1:])
