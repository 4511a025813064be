"""Connections with time limits for a whole exchange, since those of the libraries start anew with every byte of it."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

from requests.adapters import DEFAULT_CA_BUNDLE_PATH, HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, SSLError
from urllib3.response import HTTPResponse
from urllib3.util.ssl_ import create_urllib3_context


@contextmanager
def ended_after(seconds: float, shut_down: Callable[[], object]) -> Iterator[threading.Event]:
    """Shuts a connection down if the block takes longer, and never after it; the event says whether that happened."""
    is_ended = threading.Event()

    def end() -> None:
        is_ended.set()
        with suppress(OSError, RuntimeError, ValueError):  # it is closed already, or was read to its end
            shut_down()

    timer = threading.Timer(max(seconds, 0.0), end)
    timer.daemon = True
    timer.start()
    try:
        yield is_ended
    finally:
        timer.cancel()
        timer.join()  # it may have begun, and the connection may be in use again at once


def shut_down(sock: socket.socket) -> None:
    """Ends a connection in both directions, with TLS too without notifying the other side. Raises `OSError`."""
    socket.socket.shutdown(sock, socket.SHUT_RDWR)


class _Reader(BufferedReader):
    """What a connection brings. The library takes a head that breaks off for a whole one."""

    is_in_head = True

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if self.is_in_head and not line.endswith(b"\n") and len(line) != size:
            raise http.client.RemoteDisconnected("the connection was closed within the head of an answer")
        return line


class FinalResponse(http.client.HTTPResponse):
    """An answer with a whole head, after any interim ones, of which the library skips `100 Continue` alone.

    Another one, such as a proxy's `103 Early Hints`, would pass for the answer, and the answer for that to the next
    call on the connection. A redirect that breaks off would lead a split elsewhere without its boundaries.
    """

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp: _Reader = _Reader(self.fp.detach())

    def begin(self) -> None:
        """Called by the connection for itself."""
        super().begin()
        self.fp.is_in_head = False

    def _read_status(self) -> tuple[str, int, str]:
        version, status, reason = super()._read_status()  # type: ignore[misc]  # the library's own
        is_interim = http.HTTPStatus.SWITCHING_PROTOCOLS < status < http.HTTPStatus.OK
        return version, http.HTTPStatus.CONTINUE if is_interim else status, reason


class _Connection(HTTPConnection):
    """A connection on which the head of an answer has to be complete within the time allowed for silence.

    Otherwise a server that sends a byte of it now and then, or `100 Continue` for ever, would never be given up.
    """

    response_class = FinalResponse

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3's own
        assert self.timeout is not None  # every call has one
        with ended_after(self.timeout, partial(shut_down, self.sock)) as is_late:
            try:
                response = super().getresponse()
            except Exception:
                if not is_late.is_set():
                    raise
        if is_late.is_set():  # even of a whole head, the body can't be read any more
            raise TimeoutError
        return response


def _has_certificates() -> bool:
    """Whether the system has certificates of authorities, in a file or a folder."""
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile or (paths.capath and any(Path(paths.capath).iterdir())))


class HandshakeFailed(SSLError):
    """TLS was never established, so nothing was sent."""


class _SecureConnection(_Connection, HTTPSConnection):
    """The same over TLS. It trusts the system's certificates unless others are named, or it has none: `requests` has
    its own in place of them, without the authority that an organisation has added to its machines.
    """

    def connect(self) -> None:
        if self.ssl_context is None and self.ca_certs == DEFAULT_CA_BUNDLE_PATH and _has_certificates():
            self.ssl_context, self.ca_certs = create_urllib3_context(), None
            self.ssl_context.load_default_certs()
        try:
            super().connect()
        except TimeoutError as error:  # the library takes it for that of an answer
            raise ConnectTimeoutError(self, "no TLS in time") from error
        except (OSError, SSLError) as error:
            raise HandshakeFailed(error) from error


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class TimelyAdapter(HTTPAdapter):
    """Sends over such connections. Raises `requests.ReadTimeout` for a head that isn't complete in time."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Called by the adapter for itself."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
