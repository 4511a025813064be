"""Limits the total number of requests that a capture sends."""

from __future__ import annotations

import threading

from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.text.some_of import count


class NotAsked(ClusterUnreachable):
    """A request was not sent because the budget is spent."""


class RequestBudget:
    """Shared by everything that queries the cluster; thread-safe."""

    def __init__(self, limit: int | None = None) -> None:
        """`limit` None: unlimited."""
        self._limit = limit
        self._sent = 0
        self._lock = threading.Lock()

    def spend(self) -> None:
        """Count one request that is about to be sent. Raises `NotAsked` if it may not be."""
        with self._lock:
            if self._sent == self._limit:
                raise NotAsked(f"not read: the budget of {count(self._sent, 'request')} (--max-requests) is spent")
            self._sent += 1
