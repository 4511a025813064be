"""HTTP servers in this process that end at once when their blocks do, among them such as no library offers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest_httpserver


class HTTPServer(pytest_httpserver.HTTPServer):
    """pytest-httpserver's, which by itself looks only twice a second whether it is to end."""

    def thread_target(self) -> None:
        assert self.server is not None
        self.server.serve_forever(poll_interval=0.01)


@contextmanager
def raw_server(behaviour: Callable[[socket.socket], object]) -> Iterator[str]:
    """A socket server that calls `behaviour` with every connection it accepts; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    behaviour(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def endless_heads(begin: bytes = b"HTTP/1.1 200 OK\r\nX-Slow: ", piece: bytes = b"x") -> Iterator[str]:
    """A server whose answers never get to their bodies: they begin so, and go on piece by piece."""
    is_over = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.recv(65536)
        with suppress(OSError):
            connection.sendall(begin)
            while not is_over.wait(0.02):
                connection.sendall(piece)

    with raw_server(drip) as address:
        try:
            yield address
        finally:
            is_over.set()
