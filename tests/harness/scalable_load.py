"""Scalable topics of Pulsar 5 on a live cluster: created, put under load by the Java v5 client, and read back."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness import children
from harness.admin_api import AdminApi
from harness.artifacts import class_path, java_tool
from harness.cluster import LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.errors import LoadDidNotStart

SCALABLE_RELEASE: Final = "5.0.1"
"""Its broker brings the v5 client along."""
PROGRAM: Final = Path(__file__).with_name("ScalableLoad.java")
READY: Final = "ready"
READY_LIMIT_S: Final = 240
LOG: Final = "scalable-load.log"

LAST_HASH: Final = 0xFFFF


@dataclass(frozen=True)
class Stream:
    """A steady load on a range of a scalable topic's key hashes, both ends included."""

    topic: str
    start: int
    end: int
    messages_per_s: int
    message_bytes: int = 200

    @property
    def arguments(self) -> tuple[str, ...]:
        """As the program takes them."""
        return (
            self.topic,
            f"{self.start:04x}",
            f"{self.end:04x}",
            str(self.messages_per_s),
            str(self.message_bytes),
        )


def create(admin: AdminApi, topic: str, segments: int, bundles: int) -> None:
    """Create a scalable topic with this number of segments, and its namespace with this number of bundles."""
    tenant, namespace, name = topic.removeprefix("topic://").split("/")
    admin.write("PUT", f"/tenants/{tenant}", body={"allowedClusters": [CLUSTER_NAME], "adminRoles": []})
    admin.write("PUT", f"/namespaces/{tenant}/{namespace}", body={"bundles": {"numBundles": bundles}})
    admin.write("PUT", f"/scalable/{tenant}/{namespace}/{name}", params={"numInitialSegments": str(segments)})


def active_segments(admin: AdminApi, topic: str) -> dict[int, str]:
    """The descriptors (`0000-3fff-0`) of the segments that messages are written to, by id."""
    layout = admin.read(f"/scalable/{topic.removeprefix('topic://')}")
    return {
        one["segmentId"]: f"{one['hashRange']['start']:04x}-{one['hashRange']['end']:04x}-{one['segmentId']}"
        for one in layout["segments"].values()
        if one["state"] == "ACTIVE"
    }


def wait_for_segments(
    admin: AdminApi, topic: str, wanted: Callable[[Mapping[int, str]], bool], limit_s: float
) -> dict[int, str]:
    """The active segments once they are as wanted. Raises `LoadDidNotStart` if they aren't in time."""
    deadline = time.monotonic() + limit_s
    while not wanted(found := active_segments(admin, topic)):
        if time.monotonic() > deadline:
            raise LoadDidNotStart(f"The segments of {topic} are {sorted(found.values())} after {limit_s:.0f} s.")
        time.sleep(1)
    return found


@contextmanager
def running_streams(cluster: LiveCluster, streams: Sequence[Stream]) -> Iterator[None]:
    """Hold these streams for the time of the block.

    Raises:
        LoadDidNotStart: the program ended, or didn't send in time.
    """
    arguments = [argument for stream in streams for argument in stream.arguments]
    java = str(java_tool("java", SCALABLE_RELEASE))
    options = ["-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]
    command = [java, *options, "-cp", class_path(SCALABLE_RELEASE), str(PROGRAM), cluster.service_url, *arguments]
    log = cluster.directory / LOG
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=children.environment(),
        )
    try:
        _wait_until_ready(process, log)
        yield
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(process: subprocess.Popen[str], log: Path) -> None:
    assert process.stdout is not None
    deadline = time.monotonic() + READY_LIMIT_S
    while time.monotonic() < deadline:
        line = process.stdout.readline()
        if line.strip() == READY:
            return
        if not line and process.poll() is not None:
            break
    raise LoadDidNotStart(f"The load on scalable topics did not start: {log.read_text(encoding='utf-8')[-2000:]}")
