"""Gives up an answer whose head never ends: the time-outs of the libraries start anew with every byte of it."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import HTTPResponse


class _Connection(HTTPConnection):
    """A connection on which the head of a response has to be complete within the time allowed for silence.

    Otherwise a server that sends a byte of it now and then, or `100 Continue` for ever, would never be given up.
    """

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3's own
        assert self.timeout is not None  # every call has one
        is_late, sock = threading.Event(), self.sock

        def end() -> None:
            is_late.set()
            with suppress(OSError, ValueError):  # it has just been closed
                sock.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(self.timeout, end)
        timer.daemon = True
        timer.start()
        try:
            response = super().getresponse()
        except Exception:
            if not is_late.is_set():
                raise
        finally:
            timer.cancel()
        if is_late.is_set():  # a head that ends early would pass for a whole one
            raise TimeoutError
        return response


class _SecureConnection(_Connection, HTTPSConnection):
    """The same over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class TimelyAdapter(HTTPAdapter):
    """Sends over such connections. Raises `requests.ReadTimeout` for a head that isn't complete in time."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
