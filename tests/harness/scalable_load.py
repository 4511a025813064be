"""Load on scalable topics, by Pulsar's Java client of release 5: the Python client can't use them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from harness.artifacts import class_path
from harness.children import environment
from harness.cluster import LiveCluster
from harness.errors import LoadDidNotStart

SOURCE: Final = Path(__file__).with_name("java") / "ScalableLoad.java"
CLIENT: Final = "pulsar-client-v5"
MESSAGE_BYTES: Final = 256
START_LIMIT_S: Final = 90


class ScalableLoad:
    """The running load."""

    def __init__(self, rates: IO[str]) -> None:
        self._rates = rates

    def change(self, topic: str, messages_per_s: float) -> None:
        """Publish to one of its topics at another rate from now on."""
        self._rates.write(f"{topic}={messages_per_s}\n")
        self._rates.flush()


@contextmanager
def scalable_load(cluster: LiveCluster, rates: Mapping[str, float]) -> Iterator[ScalableLoad]:
    """Messages/s to each scalable topic (`topic://…`), all consumed once, until the block ends.

    Raises:
        LoadDidNotStart: within a minute and a half; with what it said.
    """
    log = cluster.directory / "scalable.log"
    jars = class_path(cluster.options.release, CLIENT)
    command = ["java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars, str(SOURCE)]
    command += [cluster.service_url, str(MESSAGE_BYTES), *(f"{topic}={rate}" for topic, rate in rates.items())]
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment()
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        limit = threading.Timer(START_LIMIT_S, process.kill)
        limit.start()
        try:
            if process.stdout.readline().strip() != "publishing":
                raise LoadDidNotStart(f"the load on scalable topics did not start: {log.read_text()[-2000:]}")
            limit.cancel()
            yield ScalableLoad(process.stdin)
        finally:
            limit.cancel()
            process.kill()
