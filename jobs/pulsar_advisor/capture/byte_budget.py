"""Keeps the memory for documents bounded whatever their number and size: who wants to read one waits for room."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ByteBudget:
    """Room for documents whose sizes are known only once they have been read; safe to use from several threads.

    Before it is read a document counts as much as the largest so far, before there is one as a quarter of the limit. A
    document for which there never is room comes in alone.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._largest: int | None = None
        self._taken = 0
        self._changed = threading.Condition()

    @contextmanager
    def room(self) -> Iterator[Callable[[int], None]]:
        """Wait for room for one document; call what is given with its size in bytes as soon as that is known."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken == 0 or self._taken + self._expected() <= self._limit)
            held = self._expected()
            self._taken += held

        def settle(size: int) -> None:
            nonlocal held
            with self._changed:
                self._largest = max(size, self._largest or 0)
                self._taken += size - held
                held = size
                self._changed.notify_all()

        try:
            yield settle
        finally:
            with self._changed:
                self._taken -= held
                self._changed.notify_all()

    def _expected(self) -> int:
        return self._limit // 4 if self._largest is None else self._largest
