"""A message reaches the operator's address and no other, signed and in time; of the address, only the host is shown."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from werkzeug import Request, Response

from harness.certificates import make_certificates
from pulsar_advisor.admin import webhook as under_test
from pulsar_advisor.admin.webhook import ATTEMPTS, NotDelivered, Webhook, signature
from pulsar_advisor.model.errors import UsageError
from web_server import HTTPServer, endless_heads, raw_server

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE = {"cluster": "prod", "event": 7}
PATH = "/T024/B77/the-password-in-the-path"


@pytest.fixture
def receiver() -> Iterator[HTTPServer]:
    with HTTPServer(host="127.0.0.1", port=0) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test.time, "sleep", lambda _seconds: None)


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """A name server that gives these addresses, one for each question, then the last; the names it was asked for."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def answer(host: str, port: int, **options: Any) -> Any:
        asked.append(host)
        return real(answers[min(len(asked), len(answers)) - 1], port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return asked


def test_the_message_is_json_with_an_id_and_a_time(receiver: HTTPServer) -> None:
    receiver.expect_request(PATH, method="POST").respond_with_data("")
    Webhook(receiver.url_for(PATH)).send("ledger.head", MESSAGE)
    ((request, _),) = receiver.log
    document = json.loads(request.get_data())
    assert (document["type"], document["data"]) == ("ledger.head", MESSAGE)
    assert document["timestamp"].endswith("+00:00")
    assert request.headers["webhook-id"].startswith("msg_")
    assert "webhook-signature" not in request.headers


def test_the_signature_is_that_of_the_specifications_own_library() -> None:
    key = base64.b64decode(KEY.removeprefix("whsec_"))
    found = signature(key, "msg_p5jXN8AQM9LRM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert found == "v1,O+nfNN952BKPJkMGk41JLPDpILUbgkjWWXGKCMaIT0w="


def test_a_key_signs_what_was_sent(receiver: HTTPServer, tmp_path: Path) -> None:
    receiver.expect_request(PATH).respond_with_data("")
    (tmp_path / "key").write_text(KEY + "\n")
    Webhook(receiver.url_for(PATH), f"file:{tmp_path / 'key'}").send("ledger.head", MESSAGE)
    ((request, _),) = receiver.log
    headers, body = request.headers, request.get_data()
    key = base64.b64decode(KEY.removeprefix("whsec_"))
    expected = signature(key, headers["webhook-id"], int(headers["webhook-timestamp"]), body)
    assert headers["webhook-signature"] == expected
    assert KEY.encode() not in body and b"password" not in body


@pytest.mark.parametrize("location", ["http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:{port}/elsewhere"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_said_so(receiver: HTTPServer, status: int, location: str) -> None:
    headers = {"Location": location.format(port=receiver.port)}
    receiver.expect_request(PATH).respond_with_data("", status=status, headers=headers)
    with pytest.raises(NotDelivered, match=rf"a redirect \({status}\), which is not followed"):
        Webhook(receiver.url_for(PATH)).send("ledger.head", MESSAGE)
    assert [request.path for request, _ in receiver.log] == [PATH]


@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "0xa9fea9fe", "2852039166", "169.254.170.2", "[fe80::1]", "[::ffff:169.254.169.254]"),
        *(
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::a9fe:a9fe]",
            "[2002:a9fe:a9fe::1]",
            "[2001:0:a9fe:a9fe::1]",
            "100.100.100.200",
            "168.63.129.16",
        ),
        *("[fd00:ec2::254]", "[fd20:ce::254]", "0.0.0.0", "[::]", "224.0.0.1", "[ff02::1]", "255.255.255.255"),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_metadata_or_link_local_address_gets_a_message(
    scheme: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", None)  # not even a connection
    with pytest.raises(NotDelivered, match="address: not sent"):
        Webhook(f"{scheme}://{host}/latest").send("ledger.head", MESSAGE)


@pytest.mark.parametrize("host", ["hooks..example", f"{'h' * 64}.example"])
def test_a_name_that_no_host_can_have_gets_no_message(host: str) -> None:
    with pytest.raises(NotDelivered, match="invalid host name"):
        Webhook(f"https://{host}/x").send("ledger.head", MESSAGE)


def test_a_name_with_one_such_address_among_others_gets_no_message(
    receiver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", receiver.port)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", receiver.port)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: places)
    with pytest.raises(NotDelivered, match=r"169\.254\.169\.254 is a link-local"):
        Webhook(f"http://hooks.example:{receiver.port}/").send("ledger.head", MESSAGE)
    assert not receiver.log


def test_a_name_is_resolved_once_and_what_was_checked_is_connected_to(
    receiver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.expect_request("/").respond_with_data("")
    asked = resolving(monkeypatch, "127.0.0.1", "169.254.169.254")
    Webhook(f"http://hooks.example:{receiver.port}/").send("ledger.head", MESSAGE)
    ((request, _),) = receiver.log
    assert asked == ["hooks.example"]
    assert request.headers["Host"] == f"hooks.example:{receiver.port}"


def test_the_next_address_of_a_name_is_tried_if_one_refuses(
    receiver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.expect_request("/").respond_with_data("")
    places = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, receiver.port)) for address in ("127.0.0.3", "127.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: places)
    Webhook(f"http://hooks.example:{receiver.port}/").send("ledger.head", MESSAGE)
    assert len(receiver.log) == 1
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: places[:1])
    with pytest.raises(NotDelivered, match="refused"):
        Webhook(f"http://hooks.example:{receiver.port}/").send("ledger.head", MESSAGE)


def test_the_next_address_of_a_name_is_tried_on_a_machine_without_the_protocol_of_the_first(
    receiver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.expect_request("/").respond_with_data("")
    unknown = max(socket.AddressFamily) + 100  # as IPv6 on a machine without it
    places = [(family, socket.SOCK_STREAM, 6, "", ("127.0.0.1", receiver.port)) for family in (unknown, socket.AF_INET)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: places)
    Webhook(f"http://hooks.example:{receiver.port}/").send("ledger.head", MESSAGE)
    assert len(receiver.log) == 1


def test_an_address_that_is_silent_leaves_time_for_the_next(
    receiver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.expect_request("/").respond_with_data("")
    connect, allowed_s = socket.socket.connect, []

    def silent_at_first(sock: socket.socket, place: Any) -> None:
        if place[0] == "127.0.0.3":
            allowed_s.append(sock.gettimeout())
            raise TimeoutError
        connect(sock, place)

    monkeypatch.setattr(socket.socket, "connect", silent_at_first)
    places = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, receiver.port)) for address in ("127.0.0.3", "127.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: places)
    Webhook(f"http://hooks.example:{receiver.port}/").send("ledger.head", MESSAGE)
    assert allowed_s[0] <= under_test.TIMEOUT_S / 2


def test_a_ca_file_that_is_none_is_named(receiver: HTTPServer, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(UsageError, match=r"ca\.pem can't be used as the CA file of a webhook: "):
        Webhook(f"https://127.0.0.1:{receiver.port}/", tls_ca_file=tmp_path / "ca.pem").send("ledger.head", MESSAGE)


def test_every_attempt_checks_again(receiver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver.expect_request("/").respond_with_data("", status=503)
    asked = resolving(monkeypatch, "127.0.0.1", "169.254.169.254")
    with pytest.raises(NotDelivered, match="address: not sent"):
        Webhook(f"http://hooks.example:{receiver.port}/").send("ledger.head", MESSAGE)
    assert (len(asked), len(receiver.log)) == (2, 1)


def test_plain_http_stays_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "192.0.2.7")
    with pytest.raises(NotDelivered, match=r"192\.0\.2\.7 is on another machine, .*: give an https address"):
        Webhook("http://hooks.example/").send("ledger.head", MESSAGE)


def test_tls_checks_the_host_of_the_address_not_what_it_resolved_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_certificates(tmp_path, ["127.0.0.1"], "nobody")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.broker, made.broker_key)
    with HTTPServer(host="127.0.0.1", port=0, ssl_context=context) as receiver:
        receiver.expect_request("/").respond_with_data("")
        Webhook(f"https://127.0.0.1:{receiver.port}/", tls_ca_file=made.authority).send("ledger.head", MESSAGE)
        with pytest.raises(NotDelivered, match=r"TLS failed \(unable to get local issuer"):
            Webhook(f"https://127.0.0.1:{receiver.port}/").send("ledger.head", MESSAGE)
        resolving(monkeypatch, "127.0.0.1")
        with pytest.raises(NotDelivered, match=r"TLS failed .*hooks\.example"):
            Webhook(f"https://hooks.example:{receiver.port}/", tls_ca_file=made.authority).send("ledger.head", MESSAGE)
        assert len(receiver.log) == 1


@pytest.mark.parametrize(("status", "attempts"), [(503, ATTEMPTS), (429, ATTEMPTS), (403, 1), (410, 1)])
def test_an_overloaded_receiver_is_asked_again_with_the_same_id(
    receiver: HTTPServer, status: int, attempts: int
) -> None:
    receiver.expect_request(PATH).respond_with_data("", status=status)
    with pytest.raises(NotDelivered, match=f"returned {status}") as refused:
        Webhook(receiver.url_for(PATH)).send("ledger.head", MESSAGE)
    assert len(receiver.log) == attempts
    assert len({request.headers["webhook-id"] for request, _ in receiver.log}) == 1
    assert "password" not in str(refused.value)


def test_a_message_that_arrives_at_the_second_attempt_is_delivered(receiver: HTTPServer) -> None:
    answers = iter([503, 204])

    def answer(_request: Request) -> Response:
        return Response(status=next(answers))

    receiver.expect_request(PATH).respond_with_handler(answer)
    Webhook(receiver.url_for(PATH)).send("ledger.head", MESSAGE)
    assert len(receiver.log) == 2


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 20"])
def test_a_receiver_that_never_ends_its_status_line_is_left(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(under_test, "ATTEMPTS", 1)
    piece = begin and b"x"
    with endless_heads(begin, piece) as address, pytest.raises(NotDelivered, match="no answer"):
        Webhook(f"{address}/").send("ledger.head", MESSAGE)


def begin_an_answer(connection: socket.socket) -> None:
    """Read the whole message, and send a status line and half a field."""
    while (seen := connection.recv(65536, socket.MSG_PEEK)) and not seen.endswith(b"}"):
        pass
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Cut: ")


def test_a_time_limit_that_is_up_after_the_status_line_makes_it_a_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: SimpleQueue[Callable[[], object]] = SimpleQueue()

    @contextmanager
    def ended_after(_seconds: float, shut_down: Callable[[], object]) -> Iterator[None]:
        limits.put(shut_down)
        yield

    def answer(connection: socket.socket) -> None:
        begin_an_answer(connection)
        limits.get()()
        is_over.wait()

    monkeypatch.setattr(under_test, "ended_after", ended_after)
    is_over = threading.Event()
    with raw_server(answer) as address:
        try:
            Webhook(f"{address}/").send("ledger.head", MESSAGE)
        finally:
            is_over.set()


def test_a_connection_that_breaks_after_the_status_line_is_a_delivery() -> None:
    # Closing with a message unread resets the connection.
    with raw_server(begin_an_answer) as address:
        Webhook(f"{address}/").send("ledger.head", MESSAGE)


def test_an_interim_answer_does_not_count_yet() -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")

    with raw_server(serve) as address:
        Webhook(f"{address}/").send("ledger.head", MESSAGE)


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 2\xff0 OK\r\n\r\n", b"", b"\x00" * 70_000])
def test_what_is_no_http_is_no_delivery(answer: bytes) -> None:
    def serve(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.recv(65536)
            connection.sendall(answer)

    with raw_server(serve) as address, pytest.raises(NotDelivered, match="no answer"):
        Webhook(f"{address}/").send("ledger.head", MESSAGE)


def test_only_scheme_and_host_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_HOOK", f"https://hooks.example{PATH}")
    hook = Webhook("env:OUR_HOOK")
    assert hook.place == "https://hooks.example"
    assert "password" not in repr(Webhook(f"https://hooks.example{PATH}"))


@pytest.mark.parametrize(
    "address", ["ftp://hooks.example/", "https://user:hunter2@hooks.example/", "hooks.example", ""]
)
def test_an_address_that_can_not_be_used_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UsageError, match="not a webhook address") as refused:
        Webhook(address)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("key", ["hunter2", "whsec_", "whsec_aHVudGVyMg==", "whsec_" + "A" * 400, "whsec_A" + "A" * 40])
def test_a_key_that_can_not_be_used_is_refused_and_not_repeated(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", key)
    with pytest.raises(UsageError, match="env:OUR_KEY does not hold a webhook's key: expected whsec_") as refused:
        Webhook("https://hooks.example/", "env:OUR_KEY")
    assert key == "whsec_" or key not in str(refused.value)


def test_a_key_itself_is_refused_in_place_of_a_reference_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="secrets are given by reference: env:NAME or file:PATH") as error:
        Webhook("http://127.0.0.1/", key=KEY).send("ledger.head", MESSAGE)
    assert KEY not in str(error.value)


def test_control_characters_of_the_cluster_are_escaped(receiver: HTTPServer) -> None:
    receiver.expect_request(PATH).respond_with_data("")
    Webhook(receiver.url_for(PATH)).send("advice", {"sentence": "\x1b[2Jmove \u202ea \ud800"})
    assert json.loads(receiver.log[0][0].get_data())["data"] == {"sentence": "\\x1b[2Jmove \\u202ea \\ud800"}
