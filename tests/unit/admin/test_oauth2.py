"""A token is asked of the issuer once, renewed before it expires, and the client's secret shows nowhere else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from werkzeug import Request, Response

from pulsar_advisor.admin import oauth2
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.oauth2 import AccessToken, ClientCredentials, NoToken
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.model.errors import ClusterUnreachable, UsageError
from web_server import HTTPServer, endless_heads, raw_server

DISCOVERY = "/realm/.well-known/openid-configuration"
SECRET = "hunter2"
KEY = {"type": "client_credentials", "client_id": "advisor", "client_secret": SECRET}


class Issuer:
    """A local issuer that numbers the tokens it gives."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.url = server.url_for("/realm")
        self.forms: list[dict[str, str]] = []
        self.lifetime_s: int | str | None = 3600
        server.expect_request(DISCOVERY, method="GET").respond_with_json({"token_endpoint": server.url_for("/token")})
        server.expect_request("/token", method="POST").respond_with_handler(self._give)

    def _give(self, request: Request) -> Response:
        self.forms.append(request.form.to_dict())
        token: dict[str, Any] = {"access_token": f"token-{len(self.forms)}", "token_type": "Bearer"}
        if self.lifetime_s is not None:
            token["expires_in"] = self.lifetime_s
        return Response(json.dumps(token))

    def fails(self, path: str, document: Any, status: int) -> None:
        """From now on, this path is answered so."""
        self.server.clear()
        if path != DISCOVERY:
            endpoint = {"token_endpoint": self.server.url_for("/token")}
            self.server.expect_request(DISCOVERY).respond_with_json(endpoint)
        self.server.expect_request(path).respond_with_json(document, status=status)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with HTTPServer(host="127.0.0.1", port=0) as server:
        yield Issuer(server)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "key.json"
    file.write_text(json.dumps(KEY))
    return file


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_an_issuers_cookies_are_not_kept(issuer: Issuer, key_file: Path) -> None:
    endpoint = json.dumps({"token_endpoint": issuer.server.url_for("/token")})
    issuer.server.clear()
    issuer.server.expect_request(DISCOVERY).respond_with_data(endpoint, headers={"Set-Cookie": "seen=1; Path=/"})
    issuer.server.expect_request("/token").respond_with_json({"access_token": "token-1"})
    AccessToken(ClientCredentials(issuer_url=issuer.url, key_file=key_file), "us/1").authorization()
    assert [dict(request.cookies) for request, _ in issuer.server.log] == [{}, {}]


def test_the_issuer_is_asked_as_pulsars_client_asks_it(issuer: Issuer, key_file: Path) -> None:
    credentials = ClientCredentials(issuer_url=f"{issuer.url}/", key_file=key_file, audience="urn:pulsar", scope="read")
    assert AccessToken(credentials, "us/1").authorization() == "Bearer token-1"
    assert issuer.forms == [
        {
            "grant_type": "client_credentials",
            "client_id": "advisor",
            "client_secret": SECRET,
            "audience": "urn:pulsar",
            "scope": "read",
        }
    ]
    assert {request.headers["User-Agent"] for request, _ in issuer.server.log} == {"us/1"}


def test_the_key_may_lie_in_an_environment_variable(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", json.dumps(KEY))
    AccessToken(ClientCredentials(issuer_url=issuer.url, key_env="OUR_KEY"), "us/1").authorization()
    assert issuer.forms[0].keys() == {"grant_type", "client_id", "client_secret"}


@pytest.mark.parametrize(
    ("lifetime_s", "kept_s", "renewed_s"),
    [(3600, 3239, 3241), ("3600", 3239, 3241), (None, 53, 55), ("nan", 53, 55), ("inf", 53, 55)],
)
def test_a_token_is_renewed_before_it_expires(
    issuer: Issuer, key_file: Path, lifetime_s: int | str | None, kept_s: float, renewed_s: float
) -> None:
    clock = Clock()
    issuer.lifetime_s = lifetime_s
    token = AccessToken(ClientCredentials(issuer_url=issuer.url, key_file=key_file), "us/1", clock)
    seen = []
    for clock.now_s in (0.0, kept_s, renewed_s):
        seen.append(token.authorization())
    assert seen == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


def test_a_token_grows_old_while_the_machine_sleeps(
    issuer: Issuer, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = AccessToken(ClientCredentials(issuer_url=issuer.url, key_file=key_file), "us/1")
    token.authorization()
    now_s = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: now_s(clock) + 3600)  # the monotonic clock stops meanwhile
    assert token.authorization() == "Bearer token-2"


def test_a_token_that_can_not_be_renewed_yet_is_used_until_it_expires(issuer: Issuer, key_file: Path) -> None:
    clock = Clock()
    token = AccessToken(ClientCredentials(issuer_url=issuer.url, key_file=key_file), "us/1", clock)
    token.authorization()
    issuer.fails("/token", {"error": "temporarily_unavailable"}, 400)
    asked = []
    for clock.now_s in (3300.0, 3301.0, 3599.0):
        assert token.authorization() == "Bearer token-1"
        asked.append(len(issuer.server.log))
    assert asked[0] == asked[1] < asked[2]
    clock.now_s = 3600.0
    with pytest.raises(NoToken):
        token.authorization()


def test_nobody_waits_for_an_overloaded_issuer_while_the_token_is_valid(issuer: Issuer, key_file: Path) -> None:
    clock = Clock()
    token = AccessToken(ClientCredentials(issuer_url=issuer.url, key_file=key_file), "us/1", clock)
    token.authorization()
    issuer.fails("/token", {}, 503)
    asked = []
    for clock.now_s in (3300.0, 3580.0):
        before = len(issuer.server.log)
        assert token.authorization() == "Bearer token-1"
        asked.append(len(issuer.server.log) - before)
    assert asked == [2, 1 + oauth2.ATTEMPTS]


def test_many_threads_ask_for_one_token(issuer: Issuer, key_file: Path) -> None:
    token = AccessToken(ClientCredentials(issuer_url=issuer.url, key_file=key_file), "us/1")
    with ThreadPoolExecutor(8) as pool:
        seen = set(pool.map(lambda _: token.authorization(), range(32)))
    assert (seen, len(issuer.forms)) == ({"Bearer token-1"}, 1)


def test_threads_that_wait_for_a_token_share_the_failure(issuer: Issuer, key_file: Path) -> None:
    seen, all_wait = set[int](), threading.Event()

    def now_s() -> float:
        seen.add(threading.get_ident())
        if len(seen) == 4:
            all_wait.set()
        return 0.0

    def refuse(_request: Request) -> Response:
        all_wait.wait(10)
        return Response(status=401)

    def failure(_: int) -> NoToken:
        with pytest.raises(NoToken) as raised:
            token.authorization()
        return raised.value

    issuer.server.clear()
    issuer.server.expect_request(DISCOVERY).respond_with_handler(refuse)
    token = AccessToken(ClientCredentials(issuer_url=issuer.url, key_file=key_file), "us/1", now_s)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(failure, range(4)))) == 1
    assert len(issuer.server.log) == 1


def test_a_thread_that_waited_takes_the_token_that_came_after_a_failure(issuer: Issuer, key_file: Path) -> None:
    came_s, later_s = [0.0], count(1.0)

    def now_s() -> float:
        if not came_s:
            return next(later_s)
        mine_s = came_s.pop()
        key_file.write_text("")  # while this thread waits, others come: one in vain, the next is given a token
        with pytest.raises(UsageError):
            token.authorization()
        key_file.write_text(json.dumps(KEY))
        token.authorization()
        return mine_s

    token = AccessToken(ClientCredentials(issuer_url=issuer.url, key_file=key_file), "us/1", now_s)
    assert token.authorization() == "Bearer token-1"


def test_calls_carry_the_token(issuer: Issuer, key_file: Path) -> None:
    with HTTPServer(host="127.0.0.2", port=0) as broker:
        broker.expect_request("/x", headers={"Authorization": "Bearer token-1"}).respond_with_json([])
        credentials = ClientCredentials(issuer_url=issuer.url, key_file=key_file)
        connection = AdminConnection(admin_urls=(broker.url_for("").rstrip("/"),), oauth2=credentials)
        with AdminTransport(connection) as transport:
            assert [transport.get("/x").status for _ in range(3)] == [200, 200, 200]
    assert connection.has_credentials
    assert len(issuer.forms) == 1


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_an_issuer_whose_answer_never_ends_is_given_up(
    begin: bytes, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth2, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(oauth2, "ATTEMPTS", 1)
    with endless_heads(begin) as address, pytest.raises(NoToken, match="no answer"):
        AccessToken(ClientCredentials(issuer_url=address, key_file=key_file), "us/1").authorization()


def test_an_overloaded_issuer_is_asked_again(issuer: Issuer, key_file: Path) -> None:
    issuer.server.clear()
    issuer.server.expect_ordered_request(DISCOVERY).respond_with_data(status=503)
    issuer.server.expect_ordered_request(DISCOVERY).respond_with_json(
        {"token_endpoint": issuer.server.url_for("/token")}
    )
    issuer.server.expect_ordered_request("/token").respond_with_json({"access_token": "late"})
    credentials = ClientCredentials(issuer_url=issuer.url, key_file=key_file)
    assert AccessToken(credentials, "us/1").authorization() == "Bearer late"


@pytest.mark.parametrize(
    ("path", "document", "status", "message", "asked"),
    [
        (DISCOVERY, {}, 503, "returned 503: try again later", 3),
        (DISCOVERY, {}, 404, "returned 404: check that this is the issuer's URL", 1),
        (DISCOVERY, {"issuer": SECRET}, 200, "its response is not valid OAuth2", 1),
        (DISCOVERY, {"token_endpoint": "ftp://elsewhere"}, 200, "is not an https address", 1),
        (DISCOVERY, {"token_endpoint": "http://elsewhere"}, 200, "is not an https address", 1),
        (DISCOVERY, {"token_endpoint": "https://elsewhere\\@here"}, 200, "is not an https address", 1),
        (DISCOVERY, {"x": "y" * (2 << 20)}, 200, "is larger than 1,048,576 bytes", 1),
        ("/token", {"error": "invalid_client", "error_description": SECRET}, 401, r"401 \(invalid_client\): check", 2),
        ("/token", {"error": SECRET}, 400, "returned 400: check client_id", 2),
        ("/token", {"access_token": f"{SECRET}\r\nX-Header: x"}, 200, "returned an invalid access token", 2),
        ("/token", {}, 302, "returned 302", 2),
    ],
)
def test_a_broken_issuer_is_reported_in_one_line_without_secrets(
    issuer: Issuer, key_file: Path, path: str, document: Any, status: int, message: str, asked: int
) -> None:
    issuer.fails(path, document, status)
    with pytest.raises(ClusterUnreachable, match=message) as error:
        AccessToken(ClientCredentials(issuer_url=issuer.url, key_file=key_file), "us/1").authorization()
    assert str(error.value).startswith(f"OAuth2 issuer {issuer.url}: ")
    assert SECRET not in str(error.value)
    assert len(issuer.server.log) == asked


def test_an_issuer_that_is_down_is_named(key_file: Path) -> None:
    credentials = ClientCredentials(issuer_url="http://127.0.0.1:1", key_file=key_file)
    with pytest.raises(ClusterUnreachable, match=r"^OAuth2 issuer http://127\.0\.0\.1:1: no answer: check the URL"):
        AccessToken(credentials, "us/1").authorization()


def test_an_issuer_that_breaks_off_a_handshake_is_asked_again(key_file: Path) -> None:
    asked: list[bytes] = []
    with raw_server(lambda connection: asked.append(connection.recv(1))) as address:
        credentials = ClientCredentials(issuer_url=address.replace("http:", "https:"), key_file=key_file)
        with pytest.raises(NoToken, match="TLS failed: check the host name"):
            AccessToken(credentials, "us/1").authorization()
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f'{{"client_id": "{SECRET}"}}', "is not an OAuth2 key: expected JSON with client_id and client_secret"),
        (f'"{SECRET}', "is not an OAuth2 key"),
        (" ", "holds no secret"),
        (None, "can't read the secret"),
    ],
)
def test_an_unusable_key_is_refused_without_being_shown(tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "key.json"
    if content is not None:
        file.write_text(content)
    credentials = ClientCredentials(issuer_url="http://127.0.0.1:1", key_file=file)
    with pytest.raises(UsageError, match=message) as error:
        AccessToken(credentials, "us/1").authorization()
    assert str(file) in str(error.value)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"issuer_url": "https://issuer"},
        {"issuer_url": "https://issuer", "key_file": "a", "key_env": "B"},
        {"issuer_url": "https://me:hunter2@issuer", "key_env": "B"},
        {"issuer_url": "issuer", "key_env": "B"},
        {"issuer_url": "http://issuer", "key_env": "B"},
        {"issuer_url": "https://issuer", "key_env": "B", "client_secret": SECRET},
    ],
    ids=["no key", "two keys", "password in the URL", "no URL", "in clear", "secret in the options"],
)
def test_unusable_credentials_are_refused(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as error:
        ClientCredentials(**fields)
    assert SECRET not in str(error.value.errors(include_input=False))


def test_one_way_to_authenticate_is_enough(key_file: Path) -> None:
    credentials = ClientCredentials(issuer_url="https://issuer", key_file=key_file)
    with pytest.raises(ValidationError, match="give only one of token_file, token_env, basic_user, oauth2"):
        AdminConnection(admin_urls=("https://b:8443",), oauth2=credentials, token_env="OUR_TOKEN")
