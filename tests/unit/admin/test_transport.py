"""Calls reach the right broker once, with credentials that go nowhere else, and every failure is one clear line."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests
import urllib3
from pydantic import SecretStr
from werkzeug import Request, Response

from harness.certificates import Certificates, make_certificates
from pulsar_advisor.admin.answer import ErrorAnswer
from pulsar_advisor.admin.body import TooLarge
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.no_answer import NoAnswer, no_answer
from pulsar_advisor.admin.oauth2 import NoToken
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.model.errors import ClusterUnreachable, Refused, UsageError
from web_server import HTTPServer, endless_heads, raw_server

PATH = "/admin/v2/clusters"
UNAUTHORIZED_PAGE = "<html><body><h2>HTTP ERROR 401 Authentication required</h2></body></html>"


@pytest.fixture
def broker() -> Iterator[HTTPServer]:
    with HTTPServer(host="127.0.0.1", port=0) as server:
        yield server


@pytest.fixture
def other() -> Iterator[HTTPServer]:
    """A broker on another host."""
    with HTTPServer(host="127.0.0.2", port=0) as server:
        yield server


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port without a listener, held so that no other process takes it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def connection(*urls: str, **options: Any) -> AdminConnection:
    return AdminConnection(admin_urls=urls, **options)


def url(server: HTTPServer) -> str:
    return server.url_for("").rstrip("/")


def broker_id(server: HTTPServer) -> str:
    return f"{server.host}:{server.port}"


def redirect_to(server: HTTPServer, path: str = PATH) -> Response:
    return Response(status=307, headers={"Location": f"{url(server)}{path}"})


def test_a_redirect_keeps_method_body_and_credentials(broker: HTTPServer, other: HTTPServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc.def\n")
    seen: list[tuple[str, bytes, str | None]] = []

    def split(request: Request) -> Response:
        seen.append((request.method, request.get_data(), request.headers.get("Authorization")))
        return Response(status=204)

    broker.expect_request("/split").respond_with_response(redirect_to(other, "/split?authoritative=true"))
    other.expect_request("/split", query_string="authoritative=true").respond_with_handler(split)
    with AdminTransport(connection(url(broker), token_file=tmp_path / "token"), writes=True) as transport:
        transport.trust_brokers([broker_id(other)])
        answer = transport.request("PUT", "/split", params={"authoritative": "false"}, json=[7])
    assert (answer.status, answer.url) == (204, f"{url(other)}/split")
    assert seen == [("PUT", b"[7]", "Bearer abc.def")]


def test_a_redirect_to_a_stranger_is_not_followed(broker: HTTPServer, other: HTTPServer) -> None:
    broker.expect_request(PATH).respond_with_response(redirect_to(other))
    with (
        AdminTransport(connection(url(broker))) as transport,
        pytest.raises(ClusterUnreachable, match="not a broker of"),
    ):
        transport.get(PATH)
    assert other.log == []


@pytest.mark.parametrize("asks", ["broker_url", "admin URLs"])
def test_a_get_that_was_sent_to_a_stranger_once_is_asked_again(
    broker: HTTPServer, other: HTTPServer, asks: str
) -> None:
    broker.expect_ordered_request(PATH).respond_with_response(redirect_to(other))
    broker.expect_ordered_request(PATH).respond_with_json(["c"])
    with AdminTransport(connection(url(broker))) as transport:
        answer = transport.get(PATH, broker_url=url(broker) if asks == "broker_url" else None)
    assert (json.loads(answer.body), other.log) == (["c"], [])


def test_a_get_that_a_broker_sends_to_a_stranger_goes_to_the_next_url(
    broker: HTTPServer, other: HTTPServer, closed_port: int
) -> None:
    broker.expect_request(PATH).respond_with_data(
        status=307, headers={"Location": f"http://stranger.invalid:{closed_port}{PATH}"}
    )
    other.expect_request(PATH).respond_with_json(["c"])
    with AdminTransport(connection(url(broker), url(other))) as transport:
        assert json.loads(transport.get(PATH).body) == ["c"]
    assert len(broker.log) == 1


def test_a_write_that_is_sent_to_a_stranger_is_not_sent_again(broker: HTTPServer, other: HTTPServer) -> None:
    broker.expect_request(PATH).respond_with_response(redirect_to(other))
    with (
        AdminTransport(connection(url(broker)), writes=True) as transport,
        pytest.raises(ClusterUnreachable, match="not a broker of"),
    ):
        transport.request("PUT", PATH)
    assert (len(broker.log), other.log) == (1, [])


def test_redirects_in_a_circle_end(broker: HTTPServer) -> None:
    broker.expect_request(PATH).respond_with_response(redirect_to(broker))
    with AdminTransport(connection(url(broker))) as transport, pytest.raises(ClusterUnreachable, match="more than 5"):
        transport.get(PATH)
    assert len(broker.log) == 6


def test_the_next_admin_url_is_asked_when_one_is_down(broker: HTTPServer, closed_port: int) -> None:
    broker.expect_request(PATH).respond_with_json(["c"])
    with AdminTransport(connection(f"http://127.0.0.1:{closed_port}", url(broker))) as transport:
        assert json.loads(transport.get(PATH).body) == ["c"]


def test_when_all_admin_urls_are_down_each_is_named_once(closed_port: int) -> None:
    urls = (f"http://127.0.0.1:{closed_port}", "http://no-such-host.invalid:8080")
    with AdminTransport(connection(*urls)) as transport, pytest.raises(NoAnswer) as refused:
        transport.get(PATH)
    first, second = str(refused.value).split(" · ")
    assert first.startswith(f"{urls[0]}: connection refused: check that the server is up")
    assert second.startswith(f"{urls[1]}: host name can't be resolved: check the spelling")
    assert refused.value.unsent


def test_a_listed_broker_that_is_down_may_just_have_died(broker: HTTPServer, closed_port: int) -> None:
    dead = f"127.0.0.1:{closed_port}"
    with AdminTransport(connection(url(broker))) as transport, pytest.raises(NoAnswer) as refused:
        transport.trust_brokers([dead])
        transport.get(PATH, broker_url=f"http://{dead}")
    assert str(refused.value) == (
        f"http://{dead}: connection refused: a broker that has just died is listed for up to 40 s: try again then, or "
        "check that its web port can be reached from here"
    )


def test_the_name_of_a_listed_broker_may_have_gone_with_its_pod(broker: HTTPServer) -> None:
    with AdminTransport(connection(url(broker))) as transport, pytest.raises(NoAnswer) as refused:
        transport.trust_brokers(["pulsar-broker-0.invalid:8080"])
        transport.get(PATH, broker_url="http://pulsar-broker-0.invalid:8080")
    assert str(refused.value) == (
        "http://pulsar-broker-0.invalid:8080: host name can't be resolved: a broker that has just died is listed for "
        "up to 40 s: try again then, or run on a machine that can resolve it"
    )


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_an_overloaded_broker_is_asked_again_for_a_get(broker: HTTPServer, status: int) -> None:
    broker.expect_ordered_request(PATH).respond_with_data(status=status)
    broker.expect_ordered_request(PATH).respond_with_json(["c"])
    with AdminTransport(connection(url(broker))) as transport:
        assert json.loads(transport.get(PATH).body) == ["c"]


@pytest.mark.parametrize(
    ("header", "paused_s"),
    [
        ("2", 2.0),
        ("3600", 5.0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 5.0),
        ("soon", 0.0),
        ("9" * 5000, 0.0),
        ("Wed, 21 Oct 99999999999 07:28:00 GMT", 0.0),
    ],
)
def test_a_get_waits_as_long_as_a_gateway_asks_within_its_limits(
    broker: HTTPServer, header: str, paused_s: float
) -> None:
    broker.expect_ordered_request(PATH).respond_with_data(status=429, headers={"Retry-After": header})
    broker.expect_ordered_request(PATH).respond_with_json(["c"])
    pauses_s: list[float] = []
    with AdminTransport(connection(url(broker)), sleep=pauses_s.append) as transport:
        transport.get(PATH)
    assert pauses_s == [pytest.approx(paused_s, abs=0.2)]


def test_a_get_is_sent_again_when_the_connection_breaks() -> None:
    requests: list[bytes] = []

    def answer_the_second(connection: socket.socket) -> None:
        requests.append(connection.recv(65536))
        if len(requests) == 2:
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n["c"]')

    with raw_server(answer_the_second) as address, AdminTransport(connection(address)) as transport:
        assert json.loads(transport.get(PATH).body) == ["c"]
    assert len(requests) == 2


@pytest.mark.parametrize("size", [1, 1 << 16])
@pytest.mark.parametrize(
    "head", [b"200 OK\r\nContent-Length: 1000000000", b"200 OK\r\nConnection: close", b"307 Moved\r\nLocation: /"]
)
def test_a_document_that_drips_without_end_is_given_up(head: bytes, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsar_advisor.admin.transport.DOCUMENT_TIMEOUT_S", 0.2)
    monkeypatch.setattr("pulsar_advisor.admin.transport.LARGEST_ERROR_BYTES", 1 << 30)  # time alone is to end it
    with (
        endless_heads(b"HTTP/1.1 " + head + b"\r\n\r\n", bytes(size)) as address,
        AdminTransport(connection(address)) as transport,
        pytest.raises(NoAnswer, match=r"no complete response within 0\.2 s"),
    ):
        transport.get(PATH)


def test_the_document_of_an_answer_to_a_write_has_the_time_of_the_write() -> None:
    with (
        endless_heads(b"HTTP/1.1 200 OK\r\n\r\n") as address,
        AdminTransport(connection(address, write_timeout_s=0.2), writes=True) as transport,
        pytest.raises(NoAnswer, match=r"no complete response within 0\.2 s"),
    ):
        transport.request("PUT", PATH)


def test_an_answer_that_never_gets_to_its_document_is_given_up() -> None:
    with (
        endless_heads() as address,
        AdminTransport(connection(address, read_timeout_s=0.2)) as transport,
        pytest.raises(NoAnswer, match="no complete response within"),
    ):
        transport.get(PATH)


def test_a_get_is_sent_three_times_at_most(broker: HTTPServer) -> None:
    broker.expect_request(PATH).respond_with_json({"reason": "closing"}, status=503)
    with AdminTransport(connection(url(broker))) as transport:
        answer = transport.get(PATH)
    assert (answer.status, answer.reason, len(broker.log)) == (503, "closing", 3)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_broker_that_can_not_answer_for_now_is_left_for_another(
    broker: HTTPServer, other: HTTPServer, status: int
) -> None:
    broker.expect_request(PATH).respond_with_data(status=status)
    other.expect_request(PATH).respond_with_json(["c"])
    with AdminTransport(connection(url(broker), url(other))) as transport:
        assert json.loads(transport.get(PATH).body) == ["c"]
    assert len(broker.log) == 1


def test_a_write_that_may_have_arrived_is_never_sent_again() -> None:
    requests: list[bytes] = []
    with (
        raw_server(lambda connection: requests.append(connection.recv(65536))) as address,
        AdminTransport(connection(address, address), writes=True) as transport,
        pytest.raises(NoAnswer, match="closed before") as broken,
    ):
        transport.request("PUT", "/unload")
    assert len(requests) == 1
    assert not broken.value.unsent


def test_a_write_that_can_not_have_arrived_goes_to_the_next_url(broker: HTTPServer, closed_port: int) -> None:
    broker.expect_request("/unload", method="PUT").respond_with_data(status=204)
    with AdminTransport(connection(f"http://127.0.0.1:{closed_port}", url(broker)), writes=True) as transport:
        assert transport.request("PUT", "/unload").status == 204


def test_a_write_whose_connection_was_never_made_goes_to_the_next_url(
    broker: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.expect_request("/unload", method="PUT").respond_with_data(status=204)
    connect = urllib3.util.connection.create_connection

    def behind_a_firewall(address: tuple[str, int], *arguments: Any, **options: Any) -> socket.socket:
        if address[0] == "far.example":
            raise TimeoutError
        return connect(address, *arguments, **options)

    monkeypatch.setattr("urllib3.util.connection.create_connection", behind_a_firewall)
    with AdminTransport(connection("http://far.example:8080", url(broker)), writes=True) as transport:
        assert transport.request("PUT", "/unload").status == 204
    with (
        AdminTransport(connection("http://far.example:8080"), writes=True) as transport,
        pytest.raises(NoAnswer, match=r"no connection within [0-9.]+ s: check host, port and firewall") as far,
    ):
        transport.request("PUT", "/unload")
    assert far.value.unsent


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "OPTIONS", "HEAD", "get"])
def test_a_connection_for_reading_sends_nothing_but_get(broker: HTTPServer, method: str) -> None:
    with AdminTransport(connection(url(broker))) as transport, pytest.raises(Refused, match="not sent"):
        transport.request(method, "/unload")
    assert broker.log == []


def test_a_silent_broker_is_not_asked_again() -> None:
    release = threading.Event()
    pauses: list[float] = []

    with (
        raw_server(lambda _connection: release.wait(30)) as address,
        AdminTransport(connection(address, read_timeout_s=0.2), sleep=pauses.append) as transport,
        pytest.raises(NoAnswer, match=r"no complete response within 0\.2 s"),
    ):
        try:
            transport.get(PATH)
        finally:
            release.set()
    assert pauses == []


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, UNAUTHORIZED_PAGE, "credentials rejected: check that .* hasn't expired"),
        (401, "Unauthorized", "credentials rejected"),
        (401, '{"status":"401","message":"Authentication required"}', "credentials rejected"),
        (401, '{"reason": "Unauthorized: clientAppId [reader]"}', r"the role lacks permission \(Unauthorized"),
        (403, '{"reason": "Don\'t have permission"}', r"forbidden \(Don't have permission\)"),
        (404, "<html>nginx</html>", "check that this is the admin URL of a Pulsar broker"),
        (404, "default backend - 404", r"404, not found \(default backend - 404\): check that this is the admin URL"),
        (404, '{"reason": "Namespace does not exist"}', r"404 \(Namespace does not exist\)$"),
        (301, "<html>Moved Permanently</html>", "301, redirected by a proxy, not a broker: give the address"),
        (412, '{"reason": "Invalid range\\nat org.apache"}', r"412 \(Invalid range\)$"),
    ],
)
def test_error_answers_are_distinguished(
    broker: HTTPServer, tmp_path: Path, status: int, body: str, message: str
) -> None:
    (tmp_path / "token").write_text("abc.def")
    broker.expect_request(PATH).respond_with_data(body, status=status)
    with (
        AdminTransport(connection(url(broker), token_file=tmp_path / "token")) as transport,
        pytest.raises(ErrorAnswer, match=message) as error,
    ):
        transport.require(transport.get(PATH), 200)
    assert error.value.status == status
    assert "abc.def" not in str(error.value)


@pytest.mark.parametrize(
    "credentials",
    [
        {"token": SecretStr("planted-secret")},
        {"token": SecretStr('planted and "quoted" secret')},
        {"basic_user": "ops", "basic_password": SecretStr("planted-secret")},
    ],
    ids=["token", "words", "basic"],
)
def test_an_error_that_repeats_the_credentials_is_shown_without_them(
    broker: HTTPServer, credentials: dict[str, Any]
) -> None:
    def repeated(request: Request) -> Response:
        return Response(f"bad gateway for {request.headers['Authorization']}", status=400)

    broker.expect_request(PATH).respond_with_handler(repeated)
    with AdminTransport(connection(url(broker), **credentials)) as transport, pytest.raises(ErrorAnswer) as error:
        transport.require(transport.get(PATH), 200)
    assert re.search(r"400 \(bad gateway for (Bearer|Basic) \*\*\*=*\)$", str(error.value))


@pytest.mark.parametrize(
    ("spelled", "shown"),
    [
        (lambda header: quote(header, safe=""), r"Basic%20\*\*\*"),
        (lambda header: header.replace("+", "&#43;"), r"Basic \*\*\*"),
        (lambda header: header[:-5] + "... (cut)", r"Basic \*\*\* \(cut\)"),
    ],
    ids=["percent", "html", "cut"],
)
def test_nor_does_a_proxy_that_escapes_or_cuts_them(
    broker: HTTPServer, spelled: Callable[[str], str], shown: str
) -> None:
    def repeated(request: Request) -> Response:
        return Response(json.dumps({"reason": spelled(request.headers["Authorization"])}), status=400)

    broker.expect_request(PATH).respond_with_handler(repeated)
    basic = connection(url(broker), basic_user="admin", basic_password=SecretStr("p?>ss~word>>??"))
    with AdminTransport(basic) as transport, pytest.raises(ErrorAnswer, match=rf"400 \({shown}\)$"):
        transport.require(transport.get(PATH), 200)


def test_nor_do_the_escapes_of_json_hide_them(broker: HTTPServer) -> None:
    def repeated(request: Request) -> Response:
        escapes = "".join(f"\\u{ord(character):04x}" for character in request.headers["Authorization"])
        return Response(f'{{"reason": "{escapes}"}}', status=400)

    broker.expect_request(PATH).respond_with_handler(repeated)
    secret = connection(url(broker), token=SecretStr("planted-secret"))
    with AdminTransport(secret) as transport, pytest.raises(ErrorAnswer, match=r"400 \(Bearer \*\*\*\)$"):
        transport.require(transport.get(PATH), 200)


def test_without_credentials_a_401_says_to_give_some(broker: HTTPServer) -> None:
    broker.expect_request(PATH).respond_with_data(UNAUTHORIZED_PAGE, status=401)
    with (
        AdminTransport(connection(url(broker))) as transport,
        pytest.raises(ErrorAnswer, match="credentials required: give the token file"),
    ):
        transport.require(transport.get(PATH), 200)


def test_a_rotated_token_is_picked_up(broker: HTTPServer, tmp_path: Path) -> None:
    broker.expect_request(PATH).respond_with_handler(lambda request: Response(request.headers["Authorization"]))
    token = tmp_path / "token"
    with AdminTransport(connection(url(broker), token_file=token)) as transport:
        sent = []
        for text in ("one", "two"):
            token.write_text(text)
            sent.append(transport.get(PATH).text)
    assert sent == ["Bearer one", "Bearer two"]


def test_a_token_that_is_just_being_written_is_read_again(broker: HTTPServer, tmp_path: Path) -> None:
    broker.expect_request(PATH).respond_with_handler(lambda request: Response(request.headers["Authorization"]))
    token = tmp_path / "token"
    token.write_text("one")
    texts = iter(["two", "", ""])

    def write_while(_pause_s: float) -> None:
        token.write_text(next(texts))

    with AdminTransport(connection(url(broker), token_file=token), sleep=write_while) as transport:
        sent = [transport.get(PATH).text]
        token.write_text("")
        sent.append(transport.get(PATH).text)
        token.write_text("")
        with pytest.raises(NoToken, match=f"^{token} holds no secret"):
            transport.get(PATH)
    assert sent == ["Bearer one", "Bearer two"]


def test_a_token_comes_from_an_environment_variable(broker: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_TOKEN", "abc")
    headers = {"Authorization": "Bearer abc", "X-Pulsar-Auth-Method-Name": "token"}
    broker.expect_request(PATH, headers=headers).respond_with_json([])
    with AdminTransport(connection(url(broker), token_env="OUR_TOKEN")) as transport:
        assert transport.get(PATH).status == 200


def test_basic_authentication(broker: HTTPServer, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("pass")
    headers = {"Authorization": "Basic dXNlcjpwYXNz", "X-Pulsar-Auth-Method-Name": "basic"}
    broker.expect_request(PATH, headers=headers).respond_with_json([])
    options = {"basic_user": "user", "basic_password_file": tmp_path / "password"}
    with AdminTransport(connection(url(broker), **options)) as transport:
        assert transport.get(PATH).status == 200


def test_a_token_that_is_no_single_line_is_refused_without_being_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\nlines")
    with (
        AdminTransport(connection("http://127.0.0.1:1", token_file=tmp_path / "token")) as transport,
        pytest.raises(UsageError, match="expected one line") as error,
    ):
        transport.get(PATH)
    assert "secret" not in str(error.value)


def test_netrc_and_proxies_of_the_environment_are_not_used(
    broker: HTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password mine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    broker.expect_request(PATH).respond_with_handler(
        lambda request: Response(str(request.headers.get("Authorization")))
    )
    with AdminTransport(connection(url(broker))) as transport:
        assert transport.get(PATH).text == "None"


def test_progress_is_reported_while_a_body_arrives(broker: HTTPServer) -> None:
    broker.expect_request(PATH).respond_with_data(bytes(200_000))
    pieces: list[int] = []
    with AdminTransport(connection(url(broker)), arrive=pieces.append) as transport:
        transport.get(PATH)
    assert sum(pieces) == 200_000
    assert len(pieces) > 1


def test_a_server_may_be_spared_compressing(broker: HTTPServer) -> None:
    broker.expect_request(PATH).respond_with_handler(lambda request: Response(request.headers["Accept-Encoding"]))
    with AdminTransport(connection(url(broker)), compressed=False) as transport:
        assert transport.get(PATH).text == "identity"


def test_the_user_agent_names_the_product(broker: HTTPServer) -> None:
    broker.expect_request(PATH).respond_with_handler(lambda request: Response(request.headers["User-Agent"]))
    with AdminTransport(connection(url(broker))) as transport:
        assert transport.get(PATH).text.startswith("pulsar-advisor/")


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("status", [200, 500])
def test_a_body_that_swells_is_not_read_to_its_end(broker: HTTPServer, method: str, status: int) -> None:
    bomb = gzip.compress(bytes(64 << 20))
    broker.expect_request(PATH).respond_with_data(bomb, status=status, headers={"Content-Encoding": "gzip"})
    arrived: list[int] = []
    with (
        AdminTransport(connection(url(broker)), writes=True, arrive=arrived.append) as transport,
        pytest.raises(TooLarge, match=rf"{broker_id(broker)}{PATH}: the answer \({status}\) is larger than"),
    ):
        transport.request(method, PATH)
    assert sum(arrived) <= 16 << 20
    assert len(bomb) < 100_000


def test_a_caller_may_allow_a_larger_body(broker: HTTPServer) -> None:
    broker.expect_request(PATH).respond_with_data(bytes(17 << 20))
    with AdminTransport(connection(url(broker))) as transport:
        assert len(transport.get(PATH, limit_bytes=18 << 20).body) == 17 << 20


@pytest.mark.parametrize(
    "answer",
    [
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 99999999999999999999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n[]",
        b"",
    ],
    ids=range(7),
)
def test_a_write_with_an_answer_that_makes_no_sense_may_have_been_carried_out(answer: bytes) -> None:
    def behave(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)

    with (
        raw_server(behave) as address,
        AdminTransport(connection(address), writes=True) as transport,
        pytest.raises(NoAnswer, match=address) as error,
    ):
        transport.request("PUT", PATH)
    assert not error.value.unsent


def test_a_write_cut_off_before_a_tls_file_was_missed_may_have_been_carried_out(tmp_path: Path) -> None:
    options = connection("https://broker-1:8443", tls_ca_file=tmp_path / "gone.pem")
    assert not no_answer("https://broker-1:8443", requests.ConnectionError("closed"), options, 60.0).unsent


def test_a_write_whose_answer_breaks_a_parser_may_have_been_carried_out(
    broker: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_body(*_: object) -> bytes:
        raise OverflowError

    monkeypatch.setattr("pulsar_advisor.admin.transport.read_body", read_body)
    broker.expect_request(PATH).respond_with_data(b"")
    with (
        AdminTransport(connection(url(broker)), writes=True) as transport,
        pytest.raises(NoAnswer, match=r"the response can't be parsed \(OverflowError\)") as error,
    ):
        transport.request("PUT", PATH)
    assert not error.value.unsent


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_only_hosts_of_the_cluster_are_asked(broker: HTTPServer, other: HTTPServer, method: str) -> None:
    with (
        AdminTransport(connection(url(broker)), writes=True) as transport,
        pytest.raises(ClusterUnreachable, match=r"not sent: '127\.0\.0\.2' is not a broker of this cluster"),
    ):
        transport.request(method, PATH, broker_url=url(other))
    assert other.log == []


def test_a_secret_that_was_handed_over_empty_is_said_to_be(broker: HTTPServer) -> None:
    with pytest.raises(UsageError, match="the connection holds no secret: it is empty or not set"):
        AdminConnection(admin_urls=(broker.url_for(""),), token=SecretStr(" ")).authorization()


def test_a_secret_may_be_handed_over_and_is_never_shown(broker: HTTPServer) -> None:
    broker.expect_request(PATH, headers={"Authorization": "Bearer hunter2"}).respond_with_json([])
    ours = connection(url(broker), token=SecretStr("hunter2"))
    with AdminTransport(ours) as transport:
        assert transport.get(PATH).status == 200
    assert "hunter2" not in repr(ours) + ours.model_dump_json()


def test_a_password_may_be_handed_over(broker: HTTPServer) -> None:
    broker.expect_request(PATH, headers={"Authorization": "Basic dXNlcjpwYXNz"}).respond_with_json([])
    with AdminTransport(connection(url(broker), basic_user="user", basic_password=SecretStr("pass"))) as transport:
        assert transport.get(PATH).status == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_broker_whose_web_address_is_unknown_is_asked_at_its_id(scheme: str) -> None:
    with AdminTransport(connection(f"{scheme}://proxy:8443")) as transport:
        assert transport.own_url("broker-1:8080") == f"{scheme}://broker-1:8080"


def test_the_web_address_of_a_broker_behind_tls_is_learnt_from_its_own_host() -> None:
    transport = AdminTransport(connection("https://proxy:8443"))
    transport.learn_web_address("broker-1:8080", "https://proxy:8443/admin/v2/x")
    assert transport.web_address("broker-1:8080") is None
    transport.learn_web_address("broker-1:8080", "https://broker-1:8443/admin/v2/x")
    assert transport.web_address("broker-1:8080") == "https://broker-1:8443"


@pytest.mark.parametrize("broker", ["evil", "broker-1:8080@evil:1", "", "broker-1:8080/x"])
def test_no_web_address_is_learnt_for_what_is_no_brokers_id(broker: str) -> None:
    transport = AdminTransport(AdminConnection(admin_urls=("https://broker-1:8443",)))
    transport.learn_web_address(broker, "https://broker-1:8443/admin/v2/x")
    assert transport.web_address(broker) is None


@pytest.mark.parametrize("path", ["/a/b?x=/unload", "/a/../b", "/a/%2e%2e/b", "/a#b", "/a b", "/a\\b", "@evil/x"])
def test_a_name_can_not_turn_a_call_into_another(broker: HTTPServer, path: str) -> None:
    with (
        AdminTransport(connection(url(broker)), writes=True) as transport,
        pytest.raises(ClusterUnreachable, match="not sent"),
    ):
        transport.request("PUT", path)
    assert broker.log == []


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path, ["127.0.0.1"], "client")


@contextmanager
def tls_broker(certificates: Certificates, *, wants_client: bool = False) -> Iterator[HTTPServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.broker, certificates.broker_key)
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates.authority)
    with HTTPServer(host="127.0.0.1", port=0, ssl_context=context) as server:
        server.expect_request(PATH).respond_with_json(["c"])
        yield server


def test_a_write_is_not_sent_again_when_tls_breaks_after_it(certificates: Certificates) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.broker, certificates.broker_key)
    received: list[bytes] = []

    def break_tls(plain: socket.socket) -> None:
        with context.wrap_socket(plain, server_side=True) as secure:
            received.append(secure.recv(65536))
            os.write(secure.fileno(), b"not a TLS record at all")

    with raw_server(break_tls) as address:
        url = address.replace("http:", "https:")
        with (
            AdminTransport(connection(url, url, tls_ca_file=certificates.authority), writes=True) as transport,
            pytest.raises(NoAnswer, match="TLS failed") as error,
        ):
            transport.request("PUT", "/unload")
    assert not error.value.unsent
    assert len(received) == 1


@pytest.mark.parametrize(("silence_s", "message"), [(30, r"no connection within 0\.2 s"), (0, "TLS failed")])
def test_a_write_whose_tls_was_never_established_goes_to_the_next_url(
    broker: HTTPServer, silence_s: float, message: str
) -> None:
    release = threading.Event()
    broker.expect_request(PATH, method="PUT").respond_with_data(status=204)
    with raw_server(lambda _connection: release.wait(silence_s)) as address:
        secure = address.replace("http:", "https:")
        with AdminTransport(connection(secure, url(broker), connect_timeout_s=0.2), writes=True) as transport:
            assert transport.request("PUT", PATH).status == 204
        with (
            AdminTransport(connection(secure, connect_timeout_s=0.2), writes=True) as transport,
            pytest.raises(NoAnswer, match=f"^{secure}: {message}"),
        ):
            transport.request("PUT", PATH)
        release.set()


def test_a_private_authority_is_trusted_when_given(certificates: Certificates) -> None:
    with (
        tls_broker(certificates) as broker,
        AdminTransport(connection(url(broker), tls_ca_file=certificates.authority)) as transport,
    ):
        assert json.loads(transport.get(PATH).body) == ["c"]


def test_an_authority_of_the_system_is_trusted(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    with tls_broker(certificates) as broker, AdminTransport(connection(url(broker))) as transport:
        assert json.loads(transport.get(PATH).body) == ["c"]


def test_no_authority_of_the_system_is_trusted_beside_the_given_one(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_certificates(tmp_path / "other", ["127.0.0.1"], "client")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    with (
        tls_broker(certificates) as broker,
        AdminTransport(connection(url(broker), tls_ca_file=other.authority)) as transport,
        pytest.raises(NoAnswer, match="TLS failed"),
    ):
        transport.get(PATH)


def test_an_unknown_authority_is_refused_in_one_line(certificates: Certificates) -> None:
    with (
        tls_broker(certificates) as broker,
        AdminTransport(connection(url(broker))) as transport,
        pytest.raises(
            NoAnswer, match=r"TLS failed \(certificate verify failed: .*\): check the https port, the CA file"
        ),
    ):
        transport.get(PATH)


def test_a_certificate_of_another_host_is_refused_unless_allowed(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path, ["127.0.0.9"], "client")
    with tls_broker(certificates) as broker:
        with (
            AdminTransport(connection(url(broker), tls_ca_file=certificates.authority)) as transport,
            pytest.raises(NoAnswer, match="TLS failed"),
        ):
            transport.get(PATH)
        lenient = connection(url(broker), tls_ca_file=certificates.authority, tls_verify_hostname=False)
        with AdminTransport(lenient) as transport:
            assert json.loads(transport.get(PATH).body) == ["c"]


def test_a_client_certificate_opens_the_door(certificates: Certificates) -> None:
    with tls_broker(certificates, wants_client=True) as broker:
        ours = connection(
            url(broker),
            tls_ca_file=certificates.authority,
            tls_cert_file=certificates.client,
            tls_key_file=certificates.client_key,
        )
        with AdminTransport(ours) as transport:
            assert json.loads(transport.get(PATH).body) == ["c"]
        with (
            AdminTransport(connection(url(broker), tls_ca_file=certificates.authority)) as transport,
            pytest.raises(NoAnswer),
        ):
            transport.get(PATH)


def test_credentials_never_go_from_https_to_http(certificates: Certificates, broker: HTTPServer) -> None:
    with tls_broker(certificates) as secure:
        secure.clear()
        secure.expect_request(PATH).respond_with_response(redirect_to(broker))
        with (
            AdminTransport(connection(url(secure), tls_ca_file=certificates.authority)) as transport,
            pytest.raises(
                ClusterUnreachable, match="credentials would be sent unencrypted: give the brokers' own https"
            ),
        ):
            transport.get(PATH)
    assert broker.log == []


def test_a_missing_tls_file_is_named() -> None:
    with pytest.raises(UsageError, match=r"TLS file /nowhere/ca\.pem does not exist"):
        AdminTransport(connection("https://broker:8443", tls_ca_file=Path("/nowhere/ca.pem")))


def test_a_tls_file_that_disappears_is_named_and_nothing_was_sent(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.touch()
    connection = AdminConnection(admin_urls=("https://127.0.0.1:1",), tls_ca_file=authority)
    with AdminTransport(connection, writes=True) as transport:
        authority.unlink()
        with pytest.raises(NoAnswer, match=f"TLS file {authority} does not exist any more") as failure:
            transport.request("PUT", PATH)
    assert failure.value.unsent
