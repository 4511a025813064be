"""Keeps the memory for documents bounded whatever their number and size: who wants to read one waits for room."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(eq=False)
class _Room:
    arrived: int = 0


class ByteBudget:
    """Room for documents whose sizes are known only once they have been read; safe to use from several threads.

    Before it is read a document counts as much as the largest so far, before there is one as a quarter of the limit.
    One that turns out larger waits for more room while it arrives, except the oldest, so that one always goes on. What
    is held at a time is the limit, and beyond it at most what the oldest document needs.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._largest: int | None = None
        self._held: dict[_Room, int] = {}
        """In the order in which the documents came in."""
        self._changed = threading.Condition()
        self._reading = threading.local()

    @contextmanager
    def room(self) -> Iterator[Callable[[int], None]]:
        """Wait for room for one document; call what is given with its size in bytes as soon as that is known."""
        room = _Room()
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._fits(self._expected()))
            self._held[room] = self._expected()
        self._reading.room = room

        def settle(size: int) -> None:
            with self._changed:
                self._largest = max(size, self._largest or 0)
                self._held[room] = size
                self._changed.notify_all()

        try:
            yield settle
        finally:
            self._reading.room = None
            with self._changed:
                del self._held[room]
                self._changed.notify_all()

    def arrive(self, size: int) -> None:
        """A piece of this size of the document that this thread reads has come; without a room it isn't counted."""
        room: _Room | None = getattr(self._reading, "room", None)
        if room is None:
            return
        with self._changed:
            room.arrived += size
            more = room.arrived - self._held[room]
            if more > 0:
                self._changed.wait_for(lambda: next(iter(self._held)) is room or self._fits(more))
                self._held[room] = room.arrived

    def _fits(self, size: int) -> bool:
        return sum(self._held.values()) + size <= self._limit

    def _expected(self) -> int:
        return self._limit // 4 if self._largest is None else self._largest
