"""HTTP to the admin API of one cluster: credentials, fail-over, redirects by hand, and errors told in one line.

Source for redirects and status codes: Pulsar `PulsarWebResource` and the Jetty authentication filter (2.10 to 4.2).
"""

from __future__ import annotations

import importlib.metadata
import json
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from tenacity import RetryCallState, Retrying, retry_if_exception, retry_if_result, stop_after_attempt
from tenacity.wait import wait_random_exponential

from pulsar_advisor.admin.clock import ClockDifference, clock_difference
from pulsar_advisor.admin.oauth2 import AccessToken, ClientCredentials
from pulsar_advisor.admin.request_budget import RequestBudget
from pulsar_advisor.admin.secret import secret_line
from pulsar_advisor.admin.tls_files import require_tls_files
from pulsar_advisor.model.errors import ClusterUnreachable, Refused

USER_AGENT: Final = f"pulsar-advisor/{importlib.metadata.version('pulsar-rebalance-advisor')}"
MAXIMUM_HOPS: Final = 5
"""Redirects followed for one call; Pulsar needs two (leader, then owner)."""
GET_ATTEMPTS: Final = 3
BODY_TIMEOUT_S: Final = 600.0
"""For one whole document, however steadily it drips; a broker's topic document can have 100 MB."""

_READ_CHUNK_BYTES: Final = 1 << 16
_REDIRECTS: Final = frozenset({307, 308})
_TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})

Parameters = Mapping[str, str]


class AdminConnection(BaseModel):
    """How to reach and prove ourselves to the admin API. Secrets by reference only: a file or an environment variable.

    The token (or the password of `basic_user`) is read again for every call, so a rotated file is picked up. One of
    `token_file`, `token_env`, `basic_user` and `oauth2` at most; a client certificate may come with any of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    admin_urls: tuple[str, ...] = Field(min_length=1)
    """`http(s)://host:port[/path]` of brokers or of a proxy before them; tried in turn."""
    token_file: Path | None = None
    token_env: str | None = None
    """Name of the environment variable that holds the token."""
    basic_user: str | None = None
    basic_password_file: Path | None = None
    basic_password_env: str | None = None
    oauth2: ClientCredentials | None = None
    tls_ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    tls_verify_hostname: bool = True
    connect_timeout_s: float = Field(default=5.0, gt=0)
    read_timeout_s: float = Field(default=30.0, gt=0)
    """Longest silence of a broker while it answers a GET."""
    write_timeout_s: float = Field(default=75.0, gt=0)
    """The same for other methods: an unload may take `namespaceBundleUnloadingTimeoutMs`, 60 s by default."""

    @field_validator("admin_urls")
    @classmethod
    def _plain_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_checked_url(url) for url in urls)

    @model_validator(mode="after")
    def _one_way_to_authenticate(self) -> Self:
        ways = (self.token_file, self.token_env, self.basic_user, self.oauth2)
        if sum(way is not None for way in ways) > 1:
            raise ValueError("give one of token_file, token_env, basic_user, oauth2")
        if self.basic_user is not None and (self.basic_password_file is None) == (self.basic_password_env is None):
            raise ValueError("basic_user needs one of basic_password_file, basic_password_env")
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file go together")
        return self

    @property
    def has_credentials(self) -> bool:
        """Whether an Authorization header or a client certificate is sent."""
        return any((self.token_file, self.token_env, self.basic_user, self.oauth2, self.tls_cert_file))

    def authorization(self) -> str | None:
        """The Authorization header's value, unless an OAuth2 issuer has to give it. Raises `UsageError`."""
        if self.token_file or self.token_env:
            return f"Bearer {secret_line(self.token_file, self.token_env)}"
        if self.basic_user is not None:
            password = secret_line(self.basic_password_file, self.basic_password_env)
            return f"Basic {b64encode(f'{self.basic_user}:{password}'.encode()).decode()}"
        return None


class NoAnswer(ClusterUnreachable):
    """A broker did not answer. `unsent` is true when the call can't have reached it, so that repeating it is safe."""

    def __init__(self, message: str, *, unsent: bool, timed_out: bool = False) -> None:
        super().__init__(message)
        self.unsent = unsent
        self.timed_out = timed_out


class ErrorAnswer(ClusterUnreachable):
    """A broker answered, but with an error status.

    `own_words` is the message without the broker's, which may hold anything: it can be written to disk.
    """

    def __init__(self, message: str, *, status: int, own_words: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.own_words = own_words or message


@dataclass(frozen=True)
class Answer:
    """What a broker answered, after redirects. `url` is the address that answered, without the query."""

    status: int
    url: str
    body: bytes | bytearray
    clock: ClockDifference | None = None
    """Of who answered; None if the answer tells no time."""

    @property
    def text(self) -> str:
        """The body as text; several endpoints answer bare text although they announce JSON."""
        return self.body.decode("utf-8", errors="replace")

    def json(self) -> Any:
        """The body as JSON. Raises `ErrorAnswer` if it is something else."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            message = f"{self.url}: answered {self.status} with something that is not JSON"
            raise ErrorAnswer(message, status=self.status) from error

    @property
    def reason(self) -> str:
        """First line of what Pulsar says about an error; empty where its web server answered instead of Pulsar."""
        try:
            document = json.loads(self.body)
        except ValueError:
            text = "" if self.body.lstrip()[:1] == b"<" else self.text
        else:
            text = str(document.get("reason") or "") if isinstance(document, dict) else ""
        lines = text.strip().splitlines()
        return lines[0][:200] if lines else ""


class AdminTransport:
    """Sends single calls to one cluster; safe to use from several threads. Nothing but GET, unless made for `writes`.

    Raises `NoAnswer` where nobody answered, `NotAsked` where the budget was spent and `ClusterUnreachable` where a
    redirect led out of the cluster; every answered status comes back as an `Answer`, see `require`.
    """

    def __init__(
        self,
        connection: AdminConnection,
        *,
        writes: bool = False,
        budget: RequestBudget | None = None,
        arrive: Callable[[int], None] | None = None,
    ) -> None:
        """`arrive` is told the size of every piece of a body, in the thread that reads it, and may make it wait."""
        self.connection = connection
        self._budget = budget or RequestBudget()
        self._arrive = arrive
        self._writes = writes
        self._first = 0
        self._web_addresses: dict[str, str] = {}
        self._hosts = {_host(url) for url in connection.admin_urls}
        self._lock = threading.Lock()
        self._session = _session(connection)
        self.authorization = (
            connection.authorization
            if connection.oauth2 is None
            else AccessToken(connection.oauth2, USER_AGENT).authorization
        )
        """The Authorization header's value now; None without credentials."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._session.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        broker_url: str | None = None,
        params: Parameters | None = None,
        json: Any = None,
    ) -> Answer:
        """Send one call to `broker_url`, or else to the first admin URL that answers.

        `path` is complete (`/admin/v2/…`) and already escaped. A call that may have reached a broker is never sent
        again unless it is a GET: after `NoAnswer` with `unsent` false, look before repeating.
        """
        if broker_url is not None:
            return self._exchange(method, broker_url.rstrip("/") + path, params, json)
        failures: list[NoAnswer] = []
        urls = self.connection.admin_urls
        for index in (*range(self._first, len(urls)), *range(self._first)):
            try:
                answer = self._exchange(method, urls[index] + path, params, json)
            except NoAnswer as error:
                failures.append(error)
                if method != "GET" and not error.unsent:
                    break
            else:
                # A closing broker answers 503: the next call had better ask another one.
                self._first = (index + 1) % len(urls) if answer.status == 503 else index
                return answer
        raise NoAnswer(
            " · ".join(map(str, failures)),
            unsent=all(failure.unsent for failure in failures),
            timed_out=any(failure.timed_out for failure in failures),
        )

    def get(self, path: str, *, broker_url: str | None = None, params: Parameters | None = None) -> Answer:
        """A GET, repeated with growing pauses while the broker is overloaded, closing, or can't be connected to.

        A time-out is not repeated: whoever was silent for so long isn't helped by more calls.
        """
        retrying = Retrying(
            stop=stop_after_attempt(GET_ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.2, max=5),
            retry=retry_if_exception(_is_broken_connection) | retry_if_result(_is_transient),
            retry_error_callback=_last_outcome,
            sleep=time.sleep,
        )
        return retrying(self.request, "GET", path, broker_url=broker_url, params=params)

    def require(self, answer: Answer, *accepted: int) -> Answer:
        """The answer itself if its status is one of `accepted`. Raises `ErrorAnswer` saying what to do otherwise."""
        if answer.status in accepted:
            return answer
        said = f" ({answer.reason})" if answer.reason else ""
        own_words = self._explain(answer, "")
        raise ErrorAnswer(self._explain(answer, said), status=answer.status, own_words=own_words)

    def trust_brokers(self, brokers: Iterable[str]) -> None:
        """Let redirects lead to the hosts of these brokers (`host:port`)."""
        with self._lock:
            self._hosts.update(_host(f"//{broker}") for broker in brokers)

    def learn_web_address(self, broker: str, url: str) -> None:
        """Remember the web address at which this broker itself answered; ignored if the host is another one."""
        parts = urlsplit(url)
        if _host(url) == _host(f"//{broker}"):
            with self._lock:
                self._web_addresses[broker] = f"{parts.scheme}://{parts.netloc}"

    def web_address(self, broker: str) -> str | None:
        """The web address of a broker, None while it isn't known.

        A broker's id (`host:port`) carries its plain web port if it has one, so behind an https admin URL the id says
        nothing: the address is learnt from a redirect to that broker.
        """
        with self._lock:
            known = self._web_addresses.get(broker)
        if known is None and urlsplit(self.connection.admin_urls[0]).scheme == "http":
            return f"http://{broker}"
        return known

    def _exchange(self, method: str, url: str, params: Parameters | None, body: Any) -> Answer:
        start = url
        for _ in range(MAXIMUM_HOPS + 1):
            answer, location = self._hop(method, url, params, body)
            if location is None:
                return answer
            url, params = self._redirect_target(url, location), None  # the target carries the query
        raise ClusterUnreachable(
            f"{start}: redirected more than {MAXIMUM_HOPS} times: brokers disagree about an owner or leader; try again"
        )

    def _hop(self, method: str, url: str, params: Parameters | None, body: Any) -> tuple[Answer, str | None]:
        if method != "GET" and not self._writes:
            raise Refused(f"{method} {url}: not sent: this connection was opened for reading")
        self._budget.spend()
        connection = self.connection
        silence_s = connection.read_timeout_s if method == "GET" else connection.write_timeout_s
        headers = {} if method == "GET" else {"Content-Type": "application/json"}
        asked_at_s = time.time()
        try:
            with self._session.request(
                method,
                url,
                params=params,
                data=None if body is None else json.dumps(body),
                headers=headers,
                auth=_Authorization(self.authorization()),
                timeout=(connection.connect_timeout_s, silence_s),
                allow_redirects=False,
                stream=True,
            ) as response:
                location = response.headers.get("Location") if response.status_code in _REDIRECTS else None
                clock = clock_difference(response.headers.get("Date", ""), asked_at_s, time.time())
                body = _read_body(response, self._arrive)
                return Answer(response.status_code, url.partition("?")[0], body, clock), location
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise _no_answer(url, error, connection, silence_s) from error

    def _redirect_target(self, url: str, location: str) -> str:
        target = urljoin(url, location)
        host = _host(target)
        with self._lock:
            known = host in self._hosts
        if not known:
            raise ClusterUnreachable(
                f"{_base(url)}: redirects to host '{host}', which is no broker of this cluster: not followed; "
                "use the admin URL of a broker"
            )
        if urlsplit(url).scheme == "https" and urlsplit(target).scheme != "https":
            raise ClusterUnreachable(
                f"{_base(url)}: redirects to {_base(target)}: not followed, credentials would travel in clear"
            )
        return target

    def _explain(self, answer: Answer, said: str) -> str:
        # Without valid credentials a web server answers (a page, a text, its own JSON); Pulsar itself gives a reason.
        if answer.status == 401 and answer.reason and answer.body.lstrip()[:1] == b"{":
            return f"{answer.url}: 401, our role may not do this{said}: use the credentials of a super-user"
        if answer.status == 401 and self.connection.has_credentials:
            return f"{answer.url}: 401, our credentials are not accepted: is the token or password of this cluster?"
        if answer.status == 401:
            return f"{answer.url}: 401, the cluster wants credentials: give a token file of a super-user"
        if answer.status == 403:
            return f"{answer.url}: 403, forbidden{said}: our role lacks permission, or policies are read-only"
        if answer.status == 404 and not answer.reason:
            return f"{answer.url}: 404, nothing there: is this the admin URL of a Pulsar broker?"
        return f"{answer.url}: {answer.status}{said}"


class _Authorization(AuthBase):
    """Sets our own header. Being an auth object, it also keeps `requests` from consulting ~/.netrc."""

    def __init__(self, value: str | None) -> None:
        self._value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._value is not None:
            request.headers["Authorization"] = self._value
        return request


class _AnyHostName(HTTPAdapter):
    """Checks the certificate chain but not the host name in it."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, assert_hostname=False)


def _session(connection: AdminConnection) -> requests.Session:
    issuer_ca_file = connection.oauth2.tls_ca_file if connection.oauth2 else None
    require_tls_files(connection.tls_ca_file, connection.tls_cert_file, connection.tls_key_file, issuer_ca_file)
    session = requests.Session()
    session.trust_env = False  # brokers are addressed directly, and only with the credentials we were given
    session.headers["User-Agent"] = USER_AGENT
    session.headers["Accept"] = "application/json, text/plain;q=0.9, */*;q=0.1"
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.verify = str(connection.tls_ca_file) if connection.tls_ca_file else True
    if connection.tls_cert_file and connection.tls_key_file:
        session.cert = (str(connection.tls_cert_file), str(connection.tls_key_file))
    adapter = HTTPAdapter if connection.tls_verify_hostname else _AnyHostName
    session.mount("https://", adapter(pool_connections=64, pool_maxsize=16))
    session.mount("http://", HTTPAdapter(pool_connections=64, pool_maxsize=16))
    return session


def _read_body(response: requests.Response, arrive: Callable[[int], None] | None) -> bytearray:
    deadline = time.monotonic() + BODY_TIMEOUT_S
    body = bytearray()
    for chunk in response.iter_content(_READ_CHUNK_BYTES):
        body += chunk
        if arrive is not None:
            arrive(len(chunk))
        if time.monotonic() > deadline:
            raise requests.ReadTimeout(f"document not complete within {BODY_TIMEOUT_S:.0f} s", response=response)
    return body


def _no_answer(url: str, error: Exception, connection: AdminConnection, silence_s: float) -> NoAnswer:
    """The one line for a call that nobody answered."""
    address = _base(url)
    cause = getattr(error.args[0], "reason", error.args[0]) if error.args else error
    if isinstance(error, requests.exceptions.SSLError):
        advice = "check the https port, the CA file and the host name"
        # Any other TLS error may also break a call that has been sent already.
        untrusted = "CERTIFICATE_VERIFY_FAILED" in str(cause)
        return NoAnswer(f"{address}: TLS failed ({_tls_problem(cause)}): {advice}", unsent=untrusted)
    if isinstance(error, requests.ConnectTimeout):
        what = f"no connection within {connection.connect_timeout_s:g} s: check host, port and firewall"
        return NoAnswer(f"{address}: {what}", unsent=True, timed_out=True)
    if isinstance(cause, urllib3.exceptions.NameResolutionError):
        what = "host name can't be resolved: check the spelling, or run where it is known"
        return NoAnswer(f"{address}: {what}", unsent=True)
    if isinstance(cause, urllib3.exceptions.NewConnectionError):
        what = "connection refused" if "refused" in str(cause) else "no connection"
        return NoAnswer(f"{address}: {what}: is the broker up, and is this its web (not its binary) port?", unsent=True)
    if isinstance(error, requests.ReadTimeout) or isinstance(cause, urllib3.exceptions.ReadTimeoutError):
        what = f"no complete answer within {silence_s:g} s: the broker hangs or is overloaded; try again"
        return NoAnswer(f"{address}: {what}", unsent=False, timed_out=True)
    what = "connection broken before the answer was complete: is this an http(s) port?"
    return NoAnswer(f"{address}: {what}", unsent=False)


def _tls_problem(cause: object) -> str:
    message = str(cause)
    return message.split("] ", 1)[1].split(" (_ssl", 1)[0] if "] " in message else type(cause).__name__


def _is_broken_connection(error: BaseException) -> bool:
    return isinstance(error, NoAnswer) and not error.timed_out


def _is_transient(answer: Answer) -> bool:
    return answer.status in _TRANSIENT


def _last_outcome(state: RetryCallState) -> Any:
    assert state.outcome is not None
    return state.outcome.result()


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("an admin URL must not carry a password: use basic_user and basic_password_file")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"'{url}' is not an admin URL; expected the form http://broker:8080 or https://broker:8443")
    return url.rstrip("/")


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").lower()


def _base(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
