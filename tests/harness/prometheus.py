"""Runs Debian's `prometheus`, by handle and on loopback: one that scrapes brokers, or answers from a database."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Final

import requests

from harness import children
from harness.ports import free_port

READY_S: Final = 120
STOP_S: Final = 20


@dataclass(frozen=True)
class RunningPrometheus:
    """A server that answers queries."""

    url: str
    process: Popen[bytes]


def has_prometheus() -> bool:
    """Whether this machine has it (Debian: `apt-get install prometheus`)."""
    return shutil.which("prometheus") is not None


@contextmanager
def running_prometheus(
    database: Path, targets: Sequence[str] = (), *, scrape_s: int = 15
) -> Iterator[RunningPrometheus]:
    """Answer from the database at this folder, and add to it what the targets (`host:port`) export.

    Raises `TimeoutError` if the server isn't ready in time.
    """
    database.mkdir(parents=True, exist_ok=True)
    configuration = {
        "global": {"scrape_interval": f"{scrape_s}s"},
        "scrape_configs": [{"job_name": "pulsar", "static_configs": [{"targets": list(targets)}]}],
    }
    (database / "prometheus.yml").write_text(json.dumps(configuration))  # JSON is YAML
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={database}/prometheus.yml",
        f"--storage.tsdb.path={database}",
        "--storage.tsdb.retention.time=400d",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    process = children.start(command, database / "prometheus.log")
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(f"{url}/-/ready")
        yield RunningPrometheus(url, process)
    finally:
        children.stop(process, STOP_S)
        children.kill(process)


def _wait_until_ready(url: str) -> None:
    for _ in range(READY_S):
        try:
            if requests.get(url, timeout=5).ok:
                return
        except requests.ConnectionError:
            pass
        time.sleep(1)
    raise TimeoutError(url)
