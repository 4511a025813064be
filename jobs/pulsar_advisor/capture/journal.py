"""Records the requests to the cluster and their outcomes: the part of the manifest that shows how complete it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pulsar_advisor.admin.answer import ErrorAnswer
from pulsar_advisor.admin.decoding import UnreadableAnswer
from pulsar_advisor.admin.no_answer import NoAnswer
from pulsar_advisor.admin.oauth2 import NoToken
from pulsar_advisor.admin.read_client import Observer
from pulsar_advisor.documents.manifest import NOT_AVAILABLE, Failure, Missing, Read
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.text.plain_text import plain

CLUSTER: Final = "cluster"
"""Target of reads that any broker answers."""
ZOOKEEPER: Final = "zookeeper"
SERVICE: Final = "service_url"
"""Target of surfaces that are heard by listening, which begins before the other reads."""


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass
class _Reads:
    """All reads of one surface at one target: number, times, size, and worst response."""

    started_at_ms: int
    finished_at_ms: int
    requests: int = 0
    bytes: int = 0
    status: int | None = None
    """The worst HTTP status, 0 without a response; null for ZooKeeper."""


class Journal:
    """Collects reads from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reads: dict[tuple[str, str], _Reads] = {}
        self._missing: dict[tuple[str, str | None, str | None], str] = {}
        self._failures: list[Failure] = []
        self._silent_brokers: dict[str, str] = {}

    def observer(self, surface: str, target: str) -> Observer:
        """Records every response to reads of this surface at this target (a broker id, or `CLUSTER`)."""
        started_at_ms = now_ms()

        def observe(status: int, size: int) -> None:
            self.read(surface, target, started_at_ms, status=status, size=size)

        return observe

    def read(
        self,
        surface: str,
        target: str,
        started_at_ms: int,
        *,
        status: int | None,
        size: int,
        requests: int = 1,
        finished_at_ms: int | None = None,
    ) -> None:
        """Record one response that has just arrived, or the messages of a period."""
        if finished_at_ms is None:
            finished_at_ms = now_ms()
        with self._lock:
            read = self._reads.setdefault((surface, target), _Reads(started_at_ms, finished_at_ms))
            read.started_at_ms = min(read.started_at_ms, started_at_ms)
            read.finished_at_ms = max(read.finished_at_ms, finished_at_ms)
            read.requests += requests
            read.bytes += size
            if status is not None:
                read.status = status if read.status is None else _worse(read.status, status)

    @contextmanager
    def attempt(self, surface: str, broker: str | None = None, namespace: str | None = None) -> Iterator[None]:
        """Note a missing or unreadable response of the block's reads in the journal, and go on with the capture.

        A namespace deleted in the meantime is not missing. A broker that gave no response at all is noted as silent, as
        any further request to it would only cost a time-out. Raises `NoToken`, as nothing can be read then.
        """
        try:
            yield
        except NoToken:
            raise
        except UnreadableAnswer as error:
            self.fail(surface, broker, error)
        except ErrorAnswer as error:
            if not (error.is_absence and namespace is not None):
                self.miss(surface, error.own_words, broker, namespace)
        except ClusterUnreachable as error:
            self.miss(surface, str(error), broker, namespace)
            if broker is not None and isinstance(error, NoAnswer):
                self.silence(broker, str(error))

    def miss(self, surface: str, reason: str, broker: str | None = None, namespace: str | None = None) -> None:
        """Note that a surface could not be read; the first reason is kept."""
        with self._lock:
            self._missing.setdefault((surface, broker, namespace), reason)

    def lack(self, surface: str, where: str, namespace: str | None = None) -> None:
        """Note that a release or load manager (`where`: "in 2.10.5") doesn't have this surface, which isn't a fault."""
        self.miss(surface, f"{NOT_AVAILABLE} {where}", namespace=namespace)

    def fail(self, surface: str, broker: str | None, error: UnreadableAnswer) -> None:
        """Note a document that arrived but can't be decoded, by its address."""
        what = f"{plain(error.url)}: {error.error}"
        self.note(Failure(surface=surface, broker=broker, error=what, size=error.size, sha256=error.sha256))

    def note(self, failure: Failure) -> None:
        """The same for a document that arrived earlier."""
        with self._lock:
            self._failures.append(failure)

    def silence(self, broker: str, reason: str) -> None:
        """Note that a broker (or `CLUSTER`: any of them) doesn't answer; the first reason is kept."""
        with self._lock:
            self._silent_brokers.setdefault(broker, reason)

    def silence_of(self, broker: str) -> str | None:
        """Why a broker is no longer queried, None while it answers."""
        with self._lock:
            return self._silent_brokers.get(broker)

    def reads(self) -> tuple[Read, ...]:
        """Manifest entries `reads`, in the order in which they began."""
        with self._lock:
            entries = sorted(self._reads.items(), key=lambda item: (item[1].started_at_ms, item[0]))
        return tuple(Read(surface=surface, target=target, **vars(reads)) for (surface, target), reads in entries)

    def missing(self) -> tuple[Missing, ...]:
        """Manifest entries `missing`."""
        with self._lock:
            entries = sorted(self._missing.items(), key=lambda item: tuple(part or "" for part in item[0]))
        return tuple(
            Missing(surface=surface, broker=broker, namespace=namespace, reason=reason)
            for (surface, broker, namespace), reason in entries
        )

    def failures(self) -> tuple[Failure, ...]:
        """Manifest entries `failures`."""
        with self._lock:
            return tuple(sorted(self._failures, key=lambda one: (one.surface, one.broker or "", one.sha256 or "")))

    def incomplete_brokers(self) -> tuple[str, ...]:
        """Ids of the brokers with missing or undecodable data."""
        brokers = {one.broker for one in self.missing()} | {one.broker for one in self.failures()}
        return tuple(sorted(broker for broker in brokers if broker is not None))

    def skew_ms(self) -> int:
        """Time from the start of the first read to the end of the last, excluding listening."""
        reads = [read for read in self.reads() if read.target != SERVICE]
        return max(read.finished_at_ms for read in reads) - min(read.started_at_ms for read in reads) if reads else 0


def _worse(first: int, second: int) -> int:
    return 0 if 0 in (first, second) else max(first, second)
