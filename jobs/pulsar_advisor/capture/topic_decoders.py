"""Converts brokers' topic documents into snapshot files, on all cores and in bounded memory.

Decoding holds the interpreter lock, so threads would share one core. Each decoder is a plain interpreter at the other
end of a socket, which exits when this process ends, however it ends.
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
from typing import Final, NamedTuple, Self

from pulsar_advisor.admin.decoding import Document, UnreadableAnswer
from pulsar_advisor.capture.documents import topic_lines
from pulsar_advisor.capture.raw_files import CompleteFile, RawFile


@dataclass(eq=False)
class _Room:
    arrived: int = 0


class ByteBudget:
    """Memory for documents whose sizes are known only once they have been read; thread-safe.

    An unread document counts as much as the largest so far, or a quarter of the limit if there is none yet. One that
    turns out larger waits for more room while it arrives, except the oldest, so that one always makes progress. The
    total exceeds the limit at most by what the oldest document needs.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._largest: int | None = None
        self._held: dict[_Room, int] = {}
        """Sizes held, in the order in which the documents were admitted."""
        self._changed = threading.Condition()
        self._reading = threading.local()

    @contextmanager
    def room(self) -> Iterator[Callable[[int], None]]:
        """Wait for room for one document; call the yielded function with its size in bytes as soon as that is known."""
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
        """Count a received piece of the document that this thread reads; without a room it isn't counted."""
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
"""Each needs some 40 MiB in addition to the document it decodes."""
SMALL_BYTES: Final = 1 << 20
"""A document up to this size is decoded in place: starting a process takes longer."""

_GONE = (EOFError, OSError, pickle.UnpicklingError)
"""Errors when talking to a process that has ended, at any point of a message."""


class TopicFile(NamedTuple):
    """One broker's loaded topics in the form of the snapshot."""

    file: CompleteFile
    with_segments: frozenset[str]
    """Namespaces in which the broker serves segments of scalable topics."""


def topic_file(broker: str, document: Document) -> TopicFile:
    """One broker's `broker-stats/topics`. Raises `UnreadableAnswer`."""
    file = RawFile()
    with_segments: set[str] = set()
    for lines in topic_lines(broker, document):
        file.extend(lines)
        with_segments.update(line.namespace for line in lines if line.topic.startswith("segment://"))
    return TopicFile(file.finish(), frozenset(with_segments))


class TopicDecoders:
    """Up to one process per core; thread-safe, and each thread waits for its document."""

    def __init__(self) -> None:
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        self._cores = threading.Semaphore(min(MOST_PROCESSES, cores))
        self._idle: queue.SimpleQueue[_Decoder] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while not self._idle.empty():
            self._idle.get().end()

    def topic_file(self, broker: str, document: Document) -> TopicFile:
        """As the function of the same name, on another core. Raises `UnreadableAnswer`, also if that process dies."""
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
            # In a separate session, so that Ctrl-C reaches only us. -P: no module from the current folder, which may be
            # anybody's.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from {__name__} import answer_all; answer_all({theirs.fileno()})"],
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        with ours:
            self._stream = ours.makefile("rwb")

    def ask(self, broker: str, body: bytes | bytearray) -> TopicFile | str:
        """The file, or the fault in the document. Raises one of `_GONE` if the process is gone."""
        _say(self._stream, (broker, body))
        answer: TopicFile | str = pickle.load(self._stream)
        return answer

    def end(self) -> int:
        """Let the process end, and return its exit code."""
        with suppress(OSError):  # unsent data, if the process is gone
            self._stream.close()
        return self._process.wait()


def answer_all(socket_number: int) -> None:
    """The child's main loop: documents in, files out, until the other end closes."""
    gc.disable()  # decoding creates many objects but no cycles: 1.5 to 2.7 times as fast without it
    with socket.socket(fileno=socket_number) as theirs, theirs.makefile("rwb") as stream, suppress(*_GONE):
        while True:
            broker, body = pickle.load(stream)
            try:
                answer: TopicFile | str = topic_file(broker, Document("", body))
            except UnreadableAnswer as error:
                answer = error.error
            _say(stream, answer)


def _say(stream: io.BufferedRWPair, what: object) -> None:
    pickle.dump(what, stream, pickle.HIGHEST_PROTOCOL)  # avoids copies of large byte strings
    stream.flush()
