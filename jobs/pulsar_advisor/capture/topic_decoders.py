"""Turns brokers' topic documents into files of the snapshot: on all cores, in bounded memory.

Decoding holds the interpreter's lock, so threads would share one core. The decoders are plain interpreters at the other
end of a socket: they end by themselves when this process is gone, however it went.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from pulsar_advisor.admin.read_client import Document, UnreadableAnswer
from pulsar_advisor.capture.documents import topic_lines
from pulsar_advisor.capture.raw_files import CompleteFile, RawFile


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


MOST_PROCESSES: Final = 8
"""Each needs some 40 MiB beside the document it decodes."""
SMALL_BYTES: Final = 1 << 20
"""A document up to this size is decoded at once: starting a process takes longer."""

_GONE = (EOFError, OSError, pickle.UnpicklingError)
"""What speaking to a process raises that has ended, at any point of a message."""


def topic_file(broker: str, document: Document) -> CompleteFile:
    """One broker's `broker-stats/topics` as it stands in the snapshot. Raises `UnreadableAnswer`."""
    file = RawFile()
    for lines in topic_lines(broker, document):
        file.extend(lines)
    return file.finish()


class TopicDecoders:
    """Up to one process a core; safe to use from several threads, each of which waits for its document."""

    def __init__(self) -> None:
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        self._cores = threading.Semaphore(min(MOST_PROCESSES, cores))
        self._idle: queue.SimpleQueue[_Decoder] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        while not self._idle.empty():
            self._idle.get().end()

    def topic_file(self, broker: str, document: Document) -> CompleteFile:
        """As the function of that name, on another core. Raises `UnreadableAnswer`, also if that process dies of it."""
        if len(document.body) <= SMALL_BYTES:
            return topic_file(broker, document)
        with self._cores:
            try:
                decoder = self._idle.get_nowait()
            except queue.Empty:
                decoder = _Decoder()
            try:
                answer = decoder.ask(broker, document.body)
            except _GONE:
                answer = f"the decoding process ended with {decoder.end()}: check that there is enough memory"
            else:
                self._idle.put(decoder)
        if isinstance(answer, str):
            raise UnreadableAnswer(document.url, answer, document.body)
        return answer


class _Decoder:
    """One child process and our end of the socket to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # in a session of its own, so that Ctrl-C reaches only us
                [sys.executable, "-c", f"from {__name__} import answer_all; answer_all({theirs.fileno()})"],
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        with ours:
            self._stream = ours.makefile("rwb")

    def ask(self, broker: str, body: bytes | bytearray) -> CompleteFile | str:
        """The file, or what is wrong with the document. Raises one of `_GONE` if the process is gone."""
        _say(self._stream, (broker, body))
        answer: CompleteFile | str = pickle.load(self._stream)
        return answer

    def end(self) -> int:
        """Let the process end, and give back its exit code."""
        with suppress(OSError):  # what is left to send, if the process is gone
            self._stream.close()
        return self._process.wait()


def answer_all(socket_number: int) -> None:
    """The child's whole life: documents in, files out, until nobody is at the other end."""
    gc.disable()  # decoding makes many objects and no cycles: 1.5 to 2.7 times as fast
    with socket.socket(fileno=socket_number) as theirs, theirs.makefile("rwb") as stream, suppress(*_GONE):
        while True:
            broker, body = pickle.load(stream)
            try:
                answer: CompleteFile | str = topic_file(broker, Document("", body))
            except UnreadableAnswer as error:
                answer = error.error
            _say(stream, answer)


def _say(stream: io.BufferedRWPair, what: object) -> None:
    pickle.dump(what, stream, pickle.HIGHEST_PROTOCOL)  # which copies no large bytes
    stream.flush()
