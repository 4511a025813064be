"""Bounds how many requests a capture sends in all."""

from __future__ import annotations

import threading

from pulsar_advisor.model.errors import ClusterUnreachable


class NotAsked(ClusterUnreachable):
    """A request was not sent, as all that were allowed have been."""


class RequestBudget:
    """Shared by everything that asks the cluster; safe to use from several threads."""

    def __init__(self, limit: int | None = None) -> None:
        """`limit` None: no bound."""
        self._limit = limit
        self._sent = 0
        self._lock = threading.Lock()

    def spend(self) -> None:
        """Count one request that is about to be sent. Raises `NotAsked` if it may not be."""
        with self._lock:
            if self._sent == self._limit:
                raise NotAsked(f"not read: the budget of {self._limit} requests is spent")
            self._sent += 1
