"""Whatever a redirect says, no byte reaches a host outside the cluster; everybody here listens on real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, example, given, settings
from pydantic import SecretStr

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.read_client import ReadClient
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.admin.web_address import WebAddress
from pulsar_advisor.model.errors import ClusterUnreachable
from unit.admin.hostile_locations import locations

TOKEN = "the-token-of-a-super-user"
KNOWN, EVIL = "127.0.0.1:18181", "127.0.0.9:18182"
"""As locations name them; the ports are those of the listeners once they listen."""


@dataclass
class Listener:
    """One host. It answers every first request with the location it was given, if any, and later ones with `{}`."""

    address: str
    location: str | None = None
    connections: int = 0
    received: bytearray = field(default_factory=bytearray)

    def answer(self, connection: socket.socket) -> None:
        self.connections += 1
        connection.settimeout(5)
        with suppress(OSError):
            request = connection.recv(65536)
            self.received += request
            location, self.location = self.location, None
            if location is None:
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
            else:
                redirect = (
                    f"HTTP/1.1 307 Moved\r\nConnection: close\r\nContent-Length: 0\r\nLocation: {location}\r\n\r\n"
                )
                connection.sendall(redirect.encode("latin-1", "replace"))


@contextmanager
def listening(host: str) -> Iterator[Listener]:
    with socket.create_server((host, 0)) as server:
        listener = Listener(f"{host}:{server.getsockname()[1]}")

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with closing(connection):
                        listener.answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield listener
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Listener, Listener]]:
    with ExitStack() as stack:
        known, evil = (stack.enter_context(listening(host)) for host in ("127.0.0.1", "127.0.0.9"))
        yield known, evil


@given(location=locations(KNOWN, EVIL))
@example(location=f"http://{EVIL}\\@{KNOWN}/x")
@example(location=f"http://{KNOWN}@{EVIL}/x")
@example(location=f"http://{EVIL}#@{KNOWN}/x")
@example(location=f"//{EVIL}/x")
@example(location=f"http:/\\{EVIL}/x")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_byte_reaches_a_host_outside_the_cluster(hosts: tuple[Listener, Listener], location: str) -> None:
    known, evil = hosts
    location = location.replace(KNOWN, known.address).replace(EVIL, evil.address)
    connection = AdminConnection(admin_urls=(f"http://{known.address}",), token=SecretStr(TOKEN))
    with AdminTransport(connection, writes=True, sleep=lambda _seconds: None) as transport:
        client = ReadClient(transport)
        for ask in (
            lambda: transport.request("GET", "/x"),
            lambda: transport.request("PUT", "/x", json=[1]),
            lambda: client.owned_bundles("c", known.address),
            lambda: client.load_report(known.address),
        ):
            known.location = location
            with suppress(ClusterUnreachable):
                ask()
        learnt = transport.web_address(known.address)
    assert learnt is not None
    assert WebAddress.parse(learnt).host == "127.0.0.1"
    assert (evil.connections, bytes(evil.received)) == (0, b"")


def test_the_evil_host_listens_and_the_known_one_gets_the_token(hosts: tuple[Listener, Listener]) -> None:
    known, evil = hosts
    for listener in hosts:
        connection = AdminConnection(admin_urls=(f"http://{listener.address}",), token=SecretStr(TOKEN))
        with AdminTransport(connection) as transport:
            transport.get("/x")
    assert TOKEN.encode() in known.received
    assert TOKEN.encode() in evil.received
    evil.connections, evil.received = 0, bytearray()
