"""Waiting times of `simulate`: `bench_grid.py [BROKERSxBUNDLESxTOPICS or ARCHIVE.tar]`, by default 100x10000x50000.

Ten cycles of every shedder with every placement strategy; then a grid of a thousand what-ifs of ThresholdShedder, on a
local Spark and on a standalone cluster with one worker, of two cores each. Processor seconds cover Python, Java and
every child process of the command; those of the standalone worker are counted apart.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench_capture import Cost, processes, processor_seconds, watched, whole_capture
from bench_run import COMMAND, heading, show
from large_cluster import CLUSTER, LargeCluster, served

from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.transport import AdminConnection

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
            source = ["--from-archive", what]
            done(["run", *place, *source, "--shedder", "ThresholdShedder", "--placement", "LeastLongTermMessageRate"])
        else:
            with served(LargeCluster(*map(int, what.split("x")))) as broker:
                whole_capture(CaptureOptions(admin=AdminConnection(admin_urls=(f"http://{broker}",))), folder)
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
        with standalone(Path(folder)) as (master, daemons):
            before = used(daemons)
            cost, peak = watched([str(COMMAND), *grid, "--master", master])
            show("the same on a standalone cluster: the driver", cost, peak, "-")
            show("its master, worker and executor", Cost(cost.seconds, used(daemons) - before), 0, "-")


def done(arguments: list[str]) -> None:
    """Run a command that is not measured."""
    subprocess.run([COMMAND, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def used(daemons: list[subprocess.Popen[bytes]]) -> float:
    """Processor seconds of these processes and their descendants, those that have ended included."""
    return sum(processor_seconds(pid) for daemon in daemons for pid in processes(daemon.pid))


@contextmanager
def standalone(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A master and a worker on loopback: the master's address, and both processes."""
    address, deploy = f"127.0.0.1:{free_port()}", "org.apache.spark.deploy"
    host, _, port = address.partition(":")
    ports = ["--host", host, "--webui-port", "0"]
    with ExitStack() as stack:
        master = daemon(stack, folder / "master.log", f"{deploy}.master.Master", *ports, "--port", port)
        wait_for(folder / "master.log", "I have been elected leader")
        words = ("--cores", "2", "--memory", "4g", "--work-dir", str(folder / "work"), f"spark://{address}")
        worker = daemon(stack, folder / "worker.log", f"{deploy}.worker.Worker", *ports, *words)
        wait_for(folder / "worker.log", "Successfully registered with master")
        yield f"spark://{address}", [master, worker]


def daemon(stack: ExitStack, log: Path, *words: str) -> subprocess.Popen[bytes]:
    """A process of Spark's that ends with the stack."""
    import pyspark

    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    java = Path(pyspark.__file__).parent / "bin" / "spark-class"
    process = stack.enter_context(
        subprocess.Popen([java, *words], env=environment, stdout=log.open("wb"), stderr=subprocess.STDOUT)
    )
    stack.callback(process.terminate)
    return process


def wait_for(log: Path, text: str) -> None:
    """Wait until a log says something, a minute at most."""
    until = time.monotonic() + 60
    while text not in log.read_text():
        if time.monotonic() > until:
            raise SystemExit(f"no '{text}' in {log} within a minute:\n{log.read_text()}")
        time.sleep(0.2)


def free_port() -> int:
    """A port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


if __name__ == "__main__":
    main(*sys.argv[1:])
