"""The publish probe: before each wave, a producer sends a message to a topic that the operator names.

An admin API that answers says little about clients; a producer that waits for an acknowledgement does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from pulsar_advisor.admin.binary_client import binary_client
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.model.bounds import PROBE_GAP
from pulsar_advisor.model.errors import Refused, UsageError

MESSAGE: Final = b"pulsar-rebalance-advisor: publish probe"

_TOPIC: Final = re.compile(r"(?:non-)?persistent://[^/\s]+/[^/\s]+/\S+")

Probe = Callable[[], str | None]
"""Publishes once; why the run must stop, None if it may go on."""


def unprobed() -> None:
    """A run without a probe."""


@dataclass(frozen=True)
class PublishProbe:
    """Where to publish. Raises `UsageError` if it can't be used."""

    service_url: str
    """`pulsar(+ssl)://host:port`"""
    topic: str
    """Complete name of a topic kept for this purpose: its messages mean nothing to anyone else."""
    longest_gap_s: float
    """How long an acknowledgement may take."""

    def __post_init__(self) -> None:
        """Refuse a short topic name, which each client completes differently, and a time out of bounds."""
        if not _TOPIC.fullmatch(self.topic):
            raise UsageError(
                f"'{self.topic}' is not a complete topic name; expected persistent://tenant/namespace/name"
            )
        PROBE_GAP.check(self.longest_gap_s)


@contextmanager
def publishing(probe: PublishProbe, transport: AdminTransport) -> Iterator[Probe]:
    """A connected probe. Raises `Refused` if no producer can be created: then nothing was sent to the cluster."""
    import pulsar

    with closing(binary_client(transport, probe.service_url)) as client:
        try:
            producer = client.create_producer(probe.topic, send_timeout_millis=int(probe.longest_gap_s * 1000))
        except pulsar.PulsarException as error:
            raise Refused(
                f"the publish probe can't publish to {probe.topic} at {probe.service_url}: {type(error).__name__}; "
                "check both, and that the role may produce there"
            ) from error

        def publish() -> str | None:
            began_s = time.monotonic()
            try:
                producer.send(MESSAGE)
            except pulsar.PulsarException as error:
                return f"publishing to {probe.topic} failed within {probe.longest_gap_s:g} s: {type(error).__name__}"
            took_s = time.monotonic() - began_s
            if took_s <= probe.longest_gap_s:
                return None
            return f"{probe.topic} acknowledged after {took_s:.1f} s, more than {probe.longest_gap_s:g} s"

        yield publish
