"""A head that arrives piece by piece is given up in time, however often a piece comes."""

from __future__ import annotations

import socket
from threading import Event

import pytest
import requests

from pulsar_advisor.admin.time_limit import TimelyAdapter, ended_after
from web_server import HTTPServer, endless_heads, raw_server


@pytest.fixture
def session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", TimelyAdapter())
    return session


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    ],
)
def test_a_head_without_end_is_given_up(begin: bytes, piece: bytes, session: requests.Session) -> None:
    with endless_heads(begin, piece) as address, pytest.raises(requests.ReadTimeout):
        session.get(address, timeout=0.2)


def test_a_whole_head_in_time_is_an_answer(session: requests.Session) -> None:
    with HTTPServer(host="127.0.0.1", port=0) as server:
        server.expect_request("/").respond_with_data("here")
        assert session.get(server.url_for("/"), timeout=5).text == "here"


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_an_interim_answer_is_not_the_answer(status: int, session: requests.Session) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 %d Wait\r\nLink: </style.css>\r\n\r\n" % status)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")

    with raw_server(answer) as address:
        assert session.get(address, timeout=5).text == "here"


HEAD = b"HTTP/1.1 307 Moved\r\nLocation: /split?unload=false&splitAlgorithmName=specified\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("size", [9, 20, 37, 62, len(HEAD) - 2])
def test_a_head_that_breaks_off_is_no_answer(size: int, session: requests.Session) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(HEAD[:size])

    with raw_server(answer) as address, pytest.raises(requests.ConnectionError):
        session.get(address, timeout=5, allow_redirects=False)


def test_a_limit_that_is_up_as_its_block_ends_shuts_nothing_down_after_it() -> None:
    begun, left = Event(), Event()
    was_left: list[bool] = []

    def shut_down() -> None:
        begun.set()
        was_left.append(left.wait(0.1))

    with ended_after(0, shut_down):
        assert begun.wait(10)
    left.set()
    assert was_left == [False]
