"""A Spark standalone cluster on loopback: a master and a worker of two cores."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from harness.ports import free_port

SPARK_HOME: Final = Path(pyspark.__file__).parent
START_S: Final = 60


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster: the master's address, and the processes of master and worker."""

    master: str
    daemons: tuple[subprocess.Popen[bytes], ...]


@contextmanager
def running_spark(folder: Path, memory: str = "2g") -> Iterator[SparkCluster]:
    """A cluster that ends with the block; logs and the worker's files go to the folder.

    Raises RuntimeError when one of them doesn't start.
    """
    port = free_port()
    master, deploy = f"spark://127.0.0.1:{port}", "org.apache.spark.deploy"
    options = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as stack:

        def daemon(name: str, started: str, *words: str) -> subprocess.Popen[bytes]:
            log = folder / f"{name}.log"
            process = stack.enter_context(_daemon(log, *words))
            _wait_for(log, started, process)
            return process

        elected = ("master", "I have been elected leader", f"{deploy}.master.Master")
        registered = ("worker", "Successfully registered with master", f"{deploy}.worker.Worker")
        size = ("--cores", "2", "--memory", memory, "--work-dir", str(folder / "work"))
        leader = daemon(*elected, *options, "--port", str(port))
        worker = daemon(*registered, *options, *size, master)
        yield SparkCluster(master, (leader, worker))


def spark_environment(**more: str) -> Mapping[str, str]:
    """Variables of this process for Spark's own commands, without what chooses another Spark or Python."""
    ours = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", **more}
    return {**{key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))}, **ours}


@contextmanager
def _daemon(log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(SPARK_HOME / "bin" / "spark-class"), *words]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=spark_environment()) as process:
        try:
            yield process
        finally:
            process.terminate()


def _wait_for(log: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while text not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"no '{text}' in {log} within {START_S} s:\n{log.read_text()}")
        time.sleep(0.2)
