"""Numbered messages to topics and back: which were lost, and for how long nothing could be published.

    python -m harness.numbered_messages SERVICE_URL REPORT TOPIC...

publishes in a process of its own until SIGTERM, waits for what is still on its way, and writes the report.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from harness import children
from harness.cluster import LiveCluster
from harness.errors import LoadDidNotStart

EVERY_S: Final = 0.05
"""Each topic gets a message this often."""
GAP_S: Final = 0.2
"""A time without an acknowledgement that counts as a gap."""
START_LIMIT_S: Final = 90
ARRIVAL_LIMIT_S: Final = 60
_PUBLISHING: Final = "publishing"


@dataclass(frozen=True)
class TrafficReport:
    """What became of the messages. A message counts as published once the broker has acknowledged it."""

    published: int
    refused: int
    """Messages whose publishing failed for good."""
    lost: int
    """Published messages that never arrived."""
    repeated: int
    """Messages that arrived more than once."""
    out_of_order: int
    """Messages that arrived for the first time after a later one of their topic."""
    longest_gap_s: float
    """The longest time between two acknowledgements of one topic."""
    gap_of_topic_s: dict[str, float]
    """The same of each topic."""
    gaps: tuple[tuple[str, float, float], ...] = ()
    """Every gap, oldest first: the topic, when it ended (epoch s), and its length (s)."""


@dataclass
class NumberedMessages:
    """The running traffic; `report` is there once it has ended."""

    report: TrafficReport | None = None


@contextmanager
def numbered_messages(cluster: LiveCluster, topics: Sequence[str]) -> Iterator[NumberedMessages]:
    """A producer and a consumer for each topic, connected, until the block ends."""
    report, log = cluster.directory / "numbered.json", cluster.directory / "numbered.log"
    log.write_text("")
    command = [sys.executable, "-m", "harness.numbered_messages", cluster.service_url, str(report), *topics]
    process = children.start(command, log)
    traffic = NumberedMessages()
    try:
        _wait_until_publishing(process, log)
        yield traffic
        process.send_signal(signal.SIGTERM)
        process.wait(ARRIVAL_LIMIT_S + 30)
        traffic.report = TrafficReport(**json.loads(report.read_text()))
    finally:
        children.kill(process)


def _wait_until_publishing(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while _PUBLISHING not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise LoadDidNotStart(f"the numbered messages did not start: {log.read_text()[-2000:]}")
        time.sleep(0.2)


class _Topic:
    """Producer and consumer of one topic, and what they have seen. Callbacks come from the client's threads."""

    def __init__(self, client: Any, name: str) -> None:
        import pulsar

        self.name = name
        self.arrived: list[int] = []
        self.published: list[int] = []
        self.refused = 0
        self.longest_gap_s = 0.0
        self.gaps: list[tuple[str, float, float]] = []
        self._last_s: float | None = None
        self._lock = threading.Lock()
        self._accepted = pulsar.Result.Ok
        client.subscribe(name, "numbered", message_listener=self._arrive)
        self._producer = client.create_producer(name, send_timeout_millis=0, batching_enabled=False)

    def publish(self, number: int) -> None:
        """Send a message without waiting for it."""
        self._producer.send_async(str(number).encode(), lambda result, _id: self._acknowledge(result, number))

    def flush(self) -> None:
        """Wait until everything sent is acknowledged."""
        self._producer.flush()

    def _acknowledge(self, result: Any, number: int) -> None:
        now_s = time.monotonic()
        with self._lock:
            if result != self._accepted:
                self.refused += 1
                return
            if self._last_s is not None:
                gap_s = now_s - self._last_s
                self.longest_gap_s = max(self.longest_gap_s, gap_s)
                if gap_s >= GAP_S:
                    self.gaps.append((self.name, round(time.time(), 2), round(gap_s, 2)))
            self._last_s = now_s
            self.published.append(number)

    def _arrive(self, consumer: Any, message: Any) -> None:
        self.arrived.append(int(message.data()))
        consumer.acknowledge(message)


def _publish(service_url: str, report: Path, names: Sequence[str]) -> None:
    import pulsar

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    client = pulsar.Client(service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    topics = [_Topic(client, name) for name in names]
    print(_PUBLISHING, flush=True)
    number, due_s = 0, time.monotonic()
    while not ended.is_set():
        for topic in topics:
            topic.publish(number)
        number += 1
        due_s = max(due_s + EVERY_S, time.monotonic())
        time.sleep(max(0.0, due_s - time.monotonic()))
    for topic in topics:
        topic.flush()
    deadline_s = time.monotonic() + ARRIVAL_LIMIT_S
    while any(set(topic.published) - set(topic.arrived) for topic in topics) and time.monotonic() < deadline_s:
        time.sleep(0.2)
    report.write_text(json.dumps(asdict(_report(topics))))
    client.close()


def _report(topics: Sequence[_Topic]) -> TrafficReport:
    return TrafficReport(
        published=sum(len(topic.published) for topic in topics),
        refused=sum(topic.refused for topic in topics),
        lost=sum(len(set(topic.published) - set(topic.arrived)) for topic in topics),
        repeated=sum(count - 1 for topic in topics for count in Counter(topic.arrived).values()),
        out_of_order=sum(_out_of_order(topic.arrived) for topic in topics),
        longest_gap_s=max(topic.longest_gap_s for topic in topics),
        gap_of_topic_s={topic.name: round(topic.longest_gap_s, 2) for topic in topics},
        gaps=tuple(sorted((gap for topic in topics for gap in topic.gaps), key=lambda gap: gap[1])),
    )


def _out_of_order(arrived: Sequence[int]) -> int:
    highest, seen, late = -1, set[int](), 0
    for number in arrived:
        late += number < highest and number not in seen
        seen.add(number)
        highest = max(highest, number)
    return late


if __name__ == "__main__":
    _publish(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
