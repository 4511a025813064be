"""The brokers of a `Cluster` on real sockets, with a host beside them that isn't theirs, and faults by a seed."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final
from unittest.mock import patch
from urllib.parse import parse_qsl, urlencode

from faults.cluster import Answer, Call, Cluster

HOSTS: Final = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
FOREIGN_HOST: Final = "127.0.0.9"
LONGEST_SILENCE_S: Final = 60.0
"""How long a silent broker, or a client of a broker that doesn't mean to be silent, waits for the other."""
CALL_TAKES_S: Final = 0.02
"""How much time of the world passes with every call."""

_BOMB: Final = gzip.compress(bytes(2 << 20))
_NESTED: Final = b'{"reason":' * 50_000

BEFORE: Final = (
    *("status 500", "status 503", "status 429", "refused 409", "refused 412", "closed before", "silent before"),
    *("in a circle", "to a stranger", "to a stranger in disguise"),
)
"""Faults that keep a call from acting."""
AFTER: Final = (
    *("lost after", "silent after", "truncated", "swollen", "swollen error", "nested", "dateless", "late", "500 after"),
)
"""Faults of a call that acts: at once, or (`late`) after the caller has given up."""


@dataclass
class Faults:
    """What goes wrong, by a seed: with single calls, and with the cluster between two calls."""

    random: Random
    reads: float
    writes: float
    """The share of calls that go wrong."""
    begin: int = 0
    """The number of calls that all go well before."""
    events: list[tuple[int, str, Callable[[], None]]] = field(default_factory=list)
    """(number of the call before which it happens, what, how), for what happens to the cluster."""
    seen: list[str] = field(default_factory=list)
    """What went wrong so far."""
    calls: int = 0

    def next(self, call: Call) -> str | None:
        """What is wrong with this call; what happens to the cluster before it, happens."""
        self.calls += 1
        for number, what, happens in self.events:
            if number == self.calls:
                self.seen.append(what)
                happens()
        share = self.reads if call.method == "GET" else self.writes
        if self.calls <= self.begin or self.random.random() >= share:
            return None
        kinds = BEFORE + AFTER if call.method == "PUT" else (*BEFORE[:3], *BEFORE[5:], *AFTER[:7])
        kind = self.random.choice(kinds)
        self.seen.append(f"{call.method} {kind}")
        return kind


class _Limits:
    """The time limits of calls, which are up as soon as a broker is silent on purpose, and not on a busy machine."""

    def __init__(self) -> None:
        self._ends: dict[object, Callable[[], None]] = {}
        """By the address of the client's socket."""
        self._changed = threading.Condition()

    @contextmanager
    def ended_after(self, _seconds: float, shut_down: partial[None]) -> Iterator[threading.Event]:
        """In place of the function of this name."""
        is_ended, address = threading.Event(), shut_down.args[0].getsockname()

        def end() -> None:
            is_ended.set()
            shut_down()

        with self._changed:
            self._ends[address] = end
            self._changed.notify_all()
        try:
            yield is_ended
        finally:
            with self._changed:
                del self._ends[address]

    def end(self, address: object) -> None:
        with self._changed:
            self._changed.wait_for(lambda: address in self._ends, LONGEST_SILENCE_S)
            self._ends[address]()


_LIMITS: Final = _Limits()


@dataclass
class FaultServer:
    """Three brokers that listen, and a stranger. One world at a time is behind them."""

    brokers: tuple[str, ...]
    stranger: str
    scheme: str
    cluster: Cluster | None = None
    faults: Faults = field(default_factory=lambda: Faults(Random(0), 0.0, 0.0))
    pass_s: Callable[[float], None] = lambda _seconds: None
    strange_bytes: bytearray = field(default_factory=bytearray)
    strange_connections: int = 0
    untrusted: set[str] = field(default_factory=set)
    """Brokers that present a certificate for another host."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, cluster: Cluster, faults: Faults, pass_s: Callable[[float], None]) -> None:
        """Put another world behind the brokers. Time passes in it with every call."""
        with self.lock:
            self.cluster, self.faults, self.pass_s = cluster, faults, pass_s
            self.strange_bytes.clear()
            self.strange_connections = 0
            self.untrusted.clear()

    def exchange(self, broker: str, connection: socket.socket, request: bytes) -> bool:
        """Answer one request; whether the connection stays open."""
        head, _, rest = request.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        method, target, _ = line.split(" ")
        length = next((int(text[15:]) for text in fields if text.lower().startswith("content-length:")), 0)
        while len(rest) < length:
            rest += connection.recv(65536)
        path, _, query = target.partition("?")
        call = Call(broker, method, path, dict(parse_qsl(query)), json.loads(rest) if rest else None)
        with self.lock:
            assert self.cluster is not None
            self.pass_s(CALL_TAKES_S)
            if broker in self.cluster.dead:
                return False
            fault = self.faults.next(call)
            if broker in self.cluster.dead or fault == "closed before":
                return False
            answer = self._before(fault, broker, target)
            if answer is None and fault == "late":
                world = self.cluster
                world.later(self.faults.random.uniform(1, 55), lambda: world.answer(call))
            elif answer is None and fault != "silent before":
                answer = _written(self.cluster.answer(call), self.scheme, path)
        if fault in ("silent before", "silent after"):
            _LIMITS.end(connection.getpeername())
        if answer is None or fault in ("lost after", "silent after", "late"):
            return False
        return _send(connection, answer, fault)

    def _before(self, fault: str | None, broker: str, target: str) -> tuple[int, Mapping[str, str], bytes] | None:
        if fault is None or fault not in BEFORE:
            return None
        if fault.startswith(("status", "refused")):
            return int(fault[-3:]), {}, b'{"reason":"a fault \\u001b[2J"}'
        location = {
            "in a circle": f"{self.scheme}://{broker}{target}",
            "to a stranger": f"{self.scheme}://{self.stranger}{target}",
            "to a stranger in disguise": f"{self.scheme}://{self.stranger}\\@{broker}{target}",
        }.get(fault)
        return None if location is None else (307, {"Location": location}, b"")


def _written(answer: Answer, scheme: str, path: str) -> tuple[int, Mapping[str, str], bytes]:
    body = b"" if answer.document is None else json.dumps(answer.document).encode()
    if answer.to is None:
        return answer.status, {"Content-Type": "application/json"}, body
    query = f"?{urlencode(answer.query)}" if answer.query else ""
    return answer.status, {"Location": f"{scheme}://{answer.to}{path}{query}"}, body


def _send(connection: socket.socket, answer: tuple[int, Mapping[str, str], bytes], fault: str | None) -> bool:
    status, headers, body = answer
    length = len(body)
    if fault == "truncated":
        length += 100
    elif fault in ("swollen", "swollen error"):
        status = 500 if fault == "swollen error" else status
        body, headers = _BOMB, {**headers, "Content-Encoding": "gzip"}
        length = len(body)
        status = 200 if status == 204 else status
    elif fault == "nested":
        status, body, length = 500, _NESTED, len(_NESTED)
    elif fault == "500 after":
        status = 500
    date = "Wed, 21 Oct 99999999999 07:28:00 GMT" if fault == "dateless" else "Sat, 21 Nov 2026 08:40:00 GMT"
    lines = [f"HTTP/1.1 {status} X", f"Date: {date}", *(f"{name}: {value}" for name, value in headers.items())]
    if status != 204 or length:
        lines.append(f"Content-Length: {length}")
    connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
    return fault not in ("truncated", "swollen", "swollen error", "nested")


@contextmanager
def fault_server(contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None = None) -> Iterator[FaultServer]:
    """Brokers that listen until the block ends; `contexts` (a trusted certificate, one of another host): with TLS."""
    with ExitStack() as stack:
        stack.enter_context(patch("pulsar_advisor.admin.time_limit.ended_after", _LIMITS.ended_after))
        listeners = [stack.enter_context(socket.create_server((host, 0))) for host in (*HOSTS, FOREIGN_HOST)]
        *brokers, stranger = [f"{host}:{listener.getsockname()[1]}" for host, listener in _named(listeners)]
        server = FaultServer(tuple(brokers), stranger, "http" if contexts is None else "https")
        for broker, listener in zip(brokers, listeners, strict=False):
            stack.callback(_stop, listener)
            threading.Thread(target=_accept, args=(listener, _at(server, broker, contexts)), daemon=True).start()
        stack.callback(_stop, listeners[-1])
        threading.Thread(target=_accept, args=(listeners[-1], _as_stranger(server)), daemon=True).start()
        yield server


def _named(listeners: list[socket.socket]) -> Iterator[tuple[str, socket.socket]]:
    yield from zip((*HOSTS, FOREIGN_HOST), listeners, strict=True)


def _stop(listener: socket.socket) -> None:
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, meet: Callable[[socket.socket], None]) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_meet, args=(connection, meet), daemon=True).start()


def _meet(connection: socket.socket, meet: Callable[[socket.socket], None]) -> None:
    with closing(connection), suppress(OSError):
        meet(connection)


def _at(
    server: FaultServer, broker: str, contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None
) -> Callable[[socket.socket], None]:
    def meet(plain: socket.socket) -> None:
        if contexts is None:
            return converse(plain)
        with contexts[broker in server.untrusted].wrap_socket(plain, server_side=True) as secure:
            return converse(secure)

    def converse(connection: socket.socket) -> None:
        stays_open = True
        while stays_open:
            request = b""
            while b"\r\n\r\n" not in request:
                piece = connection.recv(65536)
                if not piece:
                    return
                request += piece
            stays_open = server.exchange(broker, connection, request)

    return meet


def _as_stranger(server: FaultServer) -> Callable[[socket.socket], None]:
    def meet(connection: socket.socket) -> None:
        server.strange_connections += 1
        connection.settimeout(1)
        server.strange_bytes += connection.recv(65536)

    return meet
