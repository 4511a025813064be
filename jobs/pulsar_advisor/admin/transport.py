"""HTTP to the admin API of one cluster: credentials, fail-over, redirects by hand, and one-line errors.

Source for redirects and status codes: Pulsar `PulsarWebResource` and the Jetty authentication filter (2.10 to 5.0.1).
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Self

import msgspec
import requests
import urllib3
from requests.auth import AuthBase
from tenacity import RetryCallState, Retrying, retry_if_exception, retry_if_result, stop_after_attempt
from tenacity.wait import wait_random_exponential

from pulsar_advisor.admin.answer import TRANSIENT, Answer, error_answer
from pulsar_advisor.admin.body import read_body
from pulsar_advisor.admin.clock import clock_difference
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.http_session import HttpSession
from pulsar_advisor.admin.no_answer import NoAnswer, no_answer
from pulsar_advisor.admin.oauth2 import AccessToken, NoToken
from pulsar_advisor.admin.request_budget import RequestBudget
from pulsar_advisor.admin.secret import require_tls_files
from pulsar_advisor.admin.time_limit import TimelyAdapter
from pulsar_advisor.admin.web_address import WebAddress, broker_host
from pulsar_advisor.model.errors import AdvisorError, ClusterUnreachable, Refused, UsageError
from pulsar_advisor.model.release import running_release
from pulsar_advisor.model.text.plain_text import plain

USER_AGENT: Final = f"pulsar-advisor/{running_release() or 'unknown'}"
MAXIMUM_HOPS: Final = 5
"""Redirects followed for one call; Pulsar needs two (leader, then owner)."""
GET_ATTEMPTS: Final = 3
LONGEST_PAUSE_S: Final = 5.0
"""Between two attempts of a GET, also where a `Retry-After` asks for more."""
LARGEST_ANSWER_BYTES: Final = 16 << 20
"""Decompressed, unless a call sets another limit."""
DOCUMENT_TIMEOUT_S: Final = 600.0
"""For a whole document; a broker's topic document can reach 100 MB."""
LARGEST_ERROR_BYTES: Final = 1 << 20
"""Decompressed, for an error response: a reason, or the page of some web server."""

_HOUR_S: Final = 3600.0
_SHORTEST_SECRET: Final = 8
"""Characters; a shorter one may occur in any error by chance, and protects nothing."""
_METHOD_NAMES: Final = {"Bearer": "token", "Basic": "basic"}
"""Pulsar's names of its ways to authenticate, by the scheme of the Authorization header."""
_REDIRECTS: Final = frozenset({307, 308})
"""Redirects by brokers, which keep method and body."""
_SUCCESS: Final = range(200, 300)

Parameters = Mapping[str, str]


class Misdirected(ClusterUnreachable):
    """A broker answered with a redirect to a host that isn't one of the cluster."""


class _BeingReplaced(NoToken):
    """Credentials that were read before can't be read now: they may only be in the course of being replaced."""


class AdminTransport:
    """Sends single calls to one cluster; thread-safe. Allows nothing but GET, unless created with `writes`.

    Any response ends as an `Answer` (see `require`) or in one of our own errors: `NoAnswer` if none came or it makes
    no sense, `TooLarge`, `NotAsked` if the budget is spent, `NoToken` if there are no credentials any more, and
    `ClusterUnreachable` if a call would have left the cluster. Credentials go only to the hosts of the admin URLs and
    of the brokers that `trust_brokers` names.
    """

    def __init__(
        self,
        connection: AdminConnection,
        *,
        writes: bool = False,
        budget: RequestBudget | None = None,
        arrive: Callable[[int], None] | None = None,
        compressed: bool = True,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`arrive` gets the size of every piece of a body, in the thread that reads it, and may block that thread.

        `compressed`: whether bodies may be compressed, which is less to send but more work for the server.
        """
        self.connection = connection
        self._budget = budget or RequestBudget()
        self._arrive = arrive
        self._writes = writes
        self._sleep = sleep
        self._first = 0
        self._web_addresses: dict[str, str] = {}
        self._brokers: tuple[str, ...] = ()
        self._hosts = {WebAddress.parse(url).host for url in connection.admin_urls}
        self._lock = threading.Lock()
        self._session = _session(connection)
        if not compressed:
            self._session.headers["Accept-Encoding"] = "identity"
        self.authorization = (
            connection.authorization
            if connection.oauth2 is None
            else AccessToken(connection.oauth2, USER_AGENT).authorization
        )
        """The Authorization header's value now; None without credentials."""
        self._has_authorized = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        broker_url: str | None = None,
        params: Parameters | None = None,
        json: Any = None,
        limit_bytes: int = LARGEST_ANSWER_BYTES,
    ) -> Answer:
        """Send one call to `broker_url`, or without it to the first admin URL that answers.

        `path` is complete (`/admin/v2/…`), already escaped, and without a query, which goes in `params`. A call that
        may have reached a broker is never sent again unless it is a GET: after `NoAnswer` with `unsent` false, check
        the state before retrying. A response of more than `limit_bytes` (decompressed) is not read to the end.
        """
        if broker_url is not None:
            return self._exchange(method, broker_url.rstrip("/") + path, params, json, limit_bytes)
        failures: list[NoAnswer] = []
        urls = self.connection.admin_urls
        for index in (*range(self._first, len(urls)), *range(self._first)):
            try:
                answer = self._exchange(method, urls[index] + path, params, json, limit_bytes)
            except NoAnswer as error:
                failures.append(error)
                if method != "GET" and not error.unsent:
                    break
            except Misdirected:
                self._first = (index + 1) % len(urls)
                raise
            else:
                # A broker that is shutting down, or a proxy without a broker, says so: send the next call elsewhere.
                self._first = (index + 1) % len(urls) if answer.status in TRANSIENT else index
                return answer
        raise NoAnswer(
            " · ".join(map(str, failures)),
            unsent=all(failure.unsent for failure in failures),
            timed_out=any(failure.timed_out for failure in failures),
        )

    def get(
        self,
        path: str,
        *,
        broker_url: str | None = None,
        params: Parameters | None = None,
        limit_bytes: int = LARGEST_ANSWER_BYTES,
    ) -> Answer:
        """A GET, retried with growing pauses while the broker is overloaded, shutting down, or can't be reached.

        Also after a redirect to a stranger, which is never followed: it may be one broker's, or one bad answer.

        A time-out is not retried: more calls don't help a broker that has stopped responding.
        """
        retrying = Retrying(
            stop=stop_after_attempt(GET_ATTEMPTS),
            wait=_pause_s,
            retry=retry_if_exception(_may_be_mended) | retry_if_result(_is_transient),
            retry_error_callback=_last_outcome,
            sleep=self._sleep,
        )
        return retrying(self.request, "GET", path, broker_url=broker_url, params=params, limit_bytes=limit_bytes)

    def require(self, answer: Answer, *accepted: int) -> Answer:
        """The answer itself if its status is one of `accepted`. Otherwise raises `ErrorAnswer` with the remedy."""
        if answer.status in accepted:
            return answer
        raise error_answer(answer, has_credentials=self.connection.has_credentials)

    def trust_brokers(self, brokers: Iterable[str]) -> None:
        """Allow calls and redirects to the hosts of these brokers. Raises `ValueError` if one isn't `host:port`."""
        self._brokers = tuple(brokers)
        hosts = {broker_host(broker) for broker in self._brokers}
        with self._lock:
            self._hosts |= hosts

    def learn_web_address(self, broker: str, url: str) -> None:
        """Remember the web address at which this broker answered; ignored if the host differs."""
        address = WebAddress.parse(url)
        with suppress(ValueError):  # an id that isn't `host:port` has no host to compare
            if address.host == broker_host(broker):
                with self._lock:
                    self._web_addresses[broker] = address.origin

    def web_address(self, broker: str) -> str | None:
        """The web address of a broker, None until it is known.

        A broker's id (`host:port`) carries its plain-text web port if it has one, which doesn't help with an
        https admin URL: the address is learnt from a redirect to that broker.
        """
        with self._lock:
            known = self._web_addresses.get(broker)
        if known is None and self.connection.admin_urls[0].startswith("http://"):
            return f"http://{broker}"
        return known

    def own_url(self, broker: str) -> str:
        """Where this broker alone is asked: its web address, or what its id is under https until that is known."""
        return self.web_address(broker) or f"https://{broker}"

    def another_broker(self, broker: str) -> str | None:
        """Another broker of the cluster, if possible one of a known web address; None if there is none."""
        with self._lock:
            others = (*self._web_addresses, *self._brokers)
        return next((other for other in others if other != broker), None)

    def _exchange(self, method: str, url: str, params: Parameters | None, body: Any, limit_bytes: int) -> Answer:
        try:
            address = WebAddress.parse(url)
        except ValueError as error:
            raise ClusterUnreachable(f"{plain(url)}: not sent: {error}") from error
        if "?" in address.target:
            raise ClusterUnreachable(f"{plain(url)}: not sent: a name in it contains a question mark")
        start = address.without_query
        for redirects in range(MAXIMUM_HOPS + 1):
            self._require_known(address, "not sent")
            answer, location = self._hop(method, address, params, body, limit_bytes)
            if location is None:
                return replace(answer, redirects=redirects)
            address, params = self._redirect_target(address, location), None  # the target carries the query
        raise ClusterUnreachable(
            f"{start}: redirected more than {MAXIMUM_HOPS} times: brokers disagree on an owner or the leader; try again"
        )

    def _hop(
        self, method: str, address: WebAddress, params: Parameters | None, body: Any, limit_bytes: int
    ) -> tuple[Answer, str | None]:
        if method != "GET" and not self._writes:
            raise Refused(f"{method} {address}: not sent: this connection was opened for reading")
        self._budget.spend()
        connection = self.connection
        silence_s = connection.read_timeout_s if method == "GET" else connection.write_timeout_s
        within_s = DOCUMENT_TIMEOUT_S if method == "GET" else silence_s  # nothing else goes on during a write
        headers = {} if method == "GET" else {"Content-Type": "application/json"}
        authorization = self._authorized()
        asked_at_s = time.time()
        try:
            with self._session.request(
                method,
                str(address),
                params=params,
                data=None if body is None else json.dumps(body),
                headers=headers,
                auth=_Authorization(authorization),
                timeout=(connection.connect_timeout_s, silence_s),
                allow_redirects=False,
                stream=True,
            ) as response:
                status = response.status_code
                location = response.headers.get("Location") if status in _REDIRECTS else None
                clock = clock_difference(response.headers.get("Date", ""), asked_at_s, time.time())
                limit_bytes = limit_bytes if status in _SUCCESS else min(limit_bytes, LARGEST_ERROR_BYTES)
                content = read_body(response, address.without_query, limit_bytes, within_s, self._arrive)
                if status not in _SUCCESS:
                    content = _without_credentials(content, authorization)
                wait_s = _retry_after_s(response.headers.get("Retry-After", ""))
                return Answer(status, address.without_query, content, clock, retry_after_s=wait_s), location
        except AdvisorError:
            raise
        except Exception as error:  # responses are untrusted: one that breaks a parser counts as no answer
            # Once its head is there, a response has the time of a document.
            given_s = silence_s if getattr(error, "response", None) is None else within_s
            is_listed = address.origin in map(self.web_address, self._brokers)
            raise no_answer(address.origin, error, connection, given_s, is_listed=is_listed) from error

    def _authorized(self) -> str | None:
        """The header's value. Raises `UsageError` if the credentials were never read, `NoToken`."""
        try:
            value = self.authorization()
        except UsageError as error:
            if not self._has_authorized:
                raise
            raise _BeingReplaced(str(error)) from error
        self._has_authorized = True
        return value

    def _redirect_target(self, address: WebAddress, location: str) -> WebAddress:
        try:
            target = address.redirected(location)
        except ValueError as error:
            raise ClusterUnreachable(f"{address.origin}: redirect not followed: its address is {error}") from error
        self._require_known(target, f"not followed from {address.origin}", Misdirected)
        if address.scheme == "https" and target.scheme != "https":
            raise ClusterUnreachable(
                f"{address.origin}: redirects to {target.origin}: not followed, credentials would be sent unencrypted: "
                "give the brokers' own https addresses, as behind a load balancer that ends TLS they redirect to http"
            )
        return target

    def _require_known(
        self, address: WebAddress, refused: str, failure: type[ClusterUnreachable] = ClusterUnreachable
    ) -> None:
        with self._lock:
            known = address.host in self._hosts
        if not known:
            raise failure(
                f"{address.origin}: {refused}: '{address.host}' is not a broker of this cluster; use a broker's URL"
            )


class _Authorization(AuthBase):
    """Sets our own headers. Being an auth object, it also keeps `requests` from consulting ~/.netrc.

    Without the name of the method, a broker tries all of its own. If all fail, it logs no reason, and with an
    `anonymousUserRole` it treats the call as anonymous.
    Source: Pulsar `AuthenticationService.authenticateHttpRequest`, `AuthenticationDataToken` (2.11.0 to 5.0.1).
    """

    def __init__(self, value: str | None) -> None:
        self._value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._value is not None:
            request.headers["Authorization"] = self._value
            request.headers["X-Pulsar-Auth-Method-Name"] = _METHOD_NAMES[self._value.partition(" ")[0]]
        return request


def _without_credentials(content: bytearray, authorization: str | None) -> bytearray:
    """An error without the credentials it answers: some proxies repeat a request's headers, and errors are shown.

    What begins as they do is hidden up to the next space or quotation mark: a proxy may cut or escape the rest.
    """
    secret = (authorization or "").partition(" ")[2].rstrip("=")
    if len(secret) < _SHORTEST_SECRET:
        return content
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        content = bytearray(msgspec.json.encode(msgspec.json.decode(content)))  # no escape hides a character
    whole, beginning = (re.escape(text) for text in (secret, secret[:_SHORTEST_SECRET]))
    return bytearray(re.sub(rf'(?:{whole}|{beginning})(?:[^\s"\\]|\\.)*'.encode(), b"***", content))


class _AnyHostName(TimelyAdapter):
    """Checks the certificate chain but not the host name in it."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, assert_hostname=False)


def _session(connection: AdminConnection) -> HttpSession:
    issuer_ca_file = connection.oauth2.tls_ca_file if connection.oauth2 else None
    require_tls_files(connection.tls_ca_file, connection.tls_cert_file, connection.tls_key_file, issuer_ca_file)
    session = HttpSession(USER_AGENT, TimelyAdapter if connection.tls_verify_hostname else _AnyHostName)
    session.headers["Accept"] = "application/json, text/plain;q=0.9, */*;q=0.1"
    session.verify = str(connection.tls_ca_file) if connection.tls_ca_file else True
    if connection.tls_cert_file and connection.tls_key_file:
        session.cert = (str(connection.tls_cert_file), str(connection.tls_key_file))
    return session


def _may_be_mended(error: BaseException) -> bool:
    return isinstance(error, Misdirected | _BeingReplaced) or (isinstance(error, NoAnswer) and not error.timed_out)


def _is_transient(answer: Answer) -> bool:
    return answer.status in TRANSIENT


def _pause_s(state: RetryCallState) -> float:
    asked_s = 0.0 if state.outcome is None or state.outcome.failed else state.outcome.result().retry_after_s
    return max(wait_random_exponential(multiplier=0.2, max=LONGEST_PAUSE_S)(state), min(asked_s, LONGEST_PAUSE_S))


def _retry_after_s(header: str) -> float:
    """The seconds that a `Retry-After` asks for, whether it is a number or a date; 0 if it can't be read."""
    try:
        return min(urllib3.Retry().parse_retry_after(header), _HOUR_S)
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return 0.0


def _last_outcome(state: RetryCallState) -> Any:
    assert state.outcome is not None
    return state.outcome.result()
