"""Access tokens by OAuth2 client credentials, as Pulsar's clients get them: requested from the issuer, renewed in time.

Source: Pulsar `AuthenticationOAuth2`, `ClientCredentialsFlow`, `DefaultMetadataResolver`, `TokenClient` (2.11 to 4.2):
the issuer's `/.well-known/openid-configuration` names the token endpoint, which takes a form.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from math import isfinite
from typing import Final, Self, TypeVar

import msgspec
import requests
import urllib3
from pydantic import BaseModel, ConfigDict, field_validator, model_validator
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from pulsar_advisor.admin.body import TooLarge, read_body
from pulsar_advisor.admin.http_session import HttpSession
from pulsar_advisor.admin.secret import Given, Secret, UserPath, secret_source, secret_text
from pulsar_advisor.admin.web_address import WebAddress
from pulsar_advisor.model.elapsed import elapsed_s
from pulsar_advisor.model.errors import AdvisorError, ClusterUnreachable, UsageError

T = TypeVar("T")

ATTEMPTS: Final = 3
TIMEOUT_S: Final = 10.0
RENEW_AFTER_RATIO: Final = 0.9
"""Share of a token's lifetime after which it is replaced, so that none expires in transit."""
LIFETIME_UNTOLD_S: Final = 60.0
"""How long a token is used if the issuer doesn't say when it expires."""
RENEW_AGAIN_S: Final = 30.0
"""How long a token that couldn't be renewed is used before the issuer is asked again, unless it expires first."""

LARGEST_ANSWER_BYTES: Final = 1 << 20
"""Decompressed; a token is a few kilobytes long."""

_LOOPBACK: Final = re.compile(r"localhost|127\.[0-9.]+|\[::1\]")
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")


class ClientCredentials(BaseModel):
    """The contents of Pulsar's `authParams`; the key refers to the JSON document that Pulsar calls `privateKey`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    issuer_url: str
    """Uses https, unless the issuer runs on this machine."""
    key: Secret | None = None
    """The document itself, passed by a program."""
    key_file: UserPath | None = None
    """JSON with `client_id` and `client_secret`."""
    key_env: Given | None = None
    """Name of the environment variable that holds this JSON."""
    audience: str | None = None
    scope: str | None = None
    tls_ca_file: UserPath | None = None
    """Certificates to trust, instead of the system's, for requests to the issuer."""

    @field_validator("issuer_url")
    @classmethod
    def _plain_url(cls, url: str) -> str:
        if not _keeps_secrets(url):
            raise ValueError("not an issuer URL; expected the form https://issuer.example.com/realm")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if sum(key is not None for key in (self.key, self.key_file, self.key_env)) != 1:
            raise ValueError("oauth2 requires exactly one of key_file, key_env")
        return self


class _Key(msgspec.Struct):
    client_id: str
    client_secret: str


class _Issuer(msgspec.Struct):
    token_endpoint: str


class _Token(msgspec.Struct):
    access_token: str
    expires_in: float | None = None


class _Refusal(msgspec.Struct):
    error: str = ""


class NoToken(ClusterUnreachable):
    """The issuer returned no token, or what holds the credentials has none any more: no call can be made at all."""


class AccessToken:
    """The current token of one client; thread-safe: one thread renews it while the others wait."""

    def __init__(self, credentials: ClientCredentials, user_agent: str, clock: Callable[[], float] = elapsed_s) -> None:
        """`clock` returns seconds as `elapsed_s` does: the token expires also while this machine sleeps."""
        self._credentials = credentials
        self._session = HttpSession(user_agent)
        self._session.verify = str(credentials.tls_ca_file) if credentials.tls_ca_file else True
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._renew_at_s = self._expires_at_s = self._failed_at_s = float("-inf")
        self._failure = AdvisorError()

    def authorization(self) -> str:
        """The Authorization header's value. Raises `UsageError` for an unusable key, `NoToken`."""
        came_at_s = self._clock()
        with self._lock:
            if self._clock() >= self._renew_at_s:
                if self._failed_at_s >= came_at_s:  # another thread has asked in vain while this one waited
                    raise self._failure
                self._renew()
            return f"Bearer {self._token}"

    def _renew(self) -> None:
        asked_at_s = self._clock()
        try:
            token = self._fetch()
        except AdvisorError as error:
            if self._clock() >= self._expires_at_s:
                self._failure, self._failed_at_s = error, self._clock()
                raise
            self._renew_at_s = min(self._expires_at_s, self._clock() + RENEW_AGAIN_S)
            return
        told_s = token.expires_in
        lifetime_s = told_s if told_s is not None and isfinite(told_s) else LIFETIME_UNTOLD_S
        self._renew_at_s = asked_at_s + RENEW_AFTER_RATIO * lifetime_s
        self._token, self._expires_at_s = token.access_token, asked_at_s + lifetime_s

    def _fetch(self) -> _Token:
        issuer = self._credentials.issuer_url
        key = self._key()
        found = self._ask(_Issuer, "GET", f"{issuer}/.well-known/openid-configuration")
        if not _keeps_secrets(found.token_endpoint):
            raise NoToken(
                f"OAuth2 issuer {issuer}: its token endpoint is not an https address; refusing to send the secret"
            )
        form = {
            "grant_type": "client_credentials",
            "client_id": key.client_id,
            "client_secret": key.client_secret,
            "audience": self._credentials.audience,
            "scope": self._credentials.scope,
        }
        token = self._ask(_Token, "POST", found.token_endpoint, {name: value for name, value in form.items() if value})
        if not token.access_token.isascii() or not token.access_token.isprintable() or not token.access_token:
            raise NoToken(f"OAuth2 issuer {issuer}: returned an invalid access token: expected ASCII text")
        return token

    def _key(self) -> _Key:
        source = (self._credentials.key, self._credentials.key_file, self._credentials.key_env)
        key = _decoded(_Key, secret_text(*source).encode())
        if key is None:
            raise UsageError(
                f"{secret_source(*source)} is not an OAuth2 key: expected JSON with client_id and client_secret"
            )
        return key

    def _ask(self, kind: type[T], method: str, url: str, form: dict[str, str] | None = None) -> T:
        """One response from the issuer; retried after a pause while the issuer is overloaded or unreachable.

        Not while the present token can be used until the issuer is asked again: each attempt may wait for `TIMEOUT_S`.
        """
        is_usable = self._clock() + RENEW_AGAIN_S < self._expires_at_s
        retrying = Retrying(
            stop=stop_after_attempt(1 if is_usable else ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.2, max=5),
            retry=retry_if_exception_type(_TryAgain),
            sleep=time.sleep,
            reraise=True,
        )
        answer: T = retrying(self._ask_once, kind, method, url, form)
        return answer

    def _ask_once(self, kind: type[T], method: str, url: str, form: dict[str, str] | None) -> T:
        where = f"OAuth2 issuer {self._credentials.issuer_url}"
        try:
            with self._session.request(
                method, url, data=form, timeout=TIMEOUT_S, allow_redirects=False, stream=True
            ) as answer:
                status, body = answer.status_code, read_body(answer, where, LARGEST_ANSWER_BYTES, TIMEOUT_S)
        except requests.exceptions.SSLError as error:
            raise _TryAgain(f"{where}: TLS failed: check the host name and oauth2.tls_ca_file") from error
        except TooLarge as error:
            raise NoToken(str(error)) from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise _TryAgain(f"{where}: no answer: check the URL and that it can be reached from here") from error
        if status == 429 or status >= 500:
            raise _TryAgain(f"{where}: returned {status}: try again later")
        if status != 200:
            refusal = _decoded(_Refusal, body)
            said = f" ({refusal.error})" if refusal and _ERROR_CODE.fullmatch(refusal.error) else ""
            todo = (
                "check client_id, client_secret, audience and scope" if form else "check that this is the issuer's URL"
            )
            raise NoToken(f"{where}: returned {status}{said}: {todo}")
        found = _decoded(kind, body)
        if found is None:
            raise NoToken(f"{where}: its response is not valid OAuth2: check that this is the issuer's URL")
        return found


class _TryAgain(NoToken):
    """The issuer didn't answer, or is temporarily unable to."""


def _keeps_secrets(url: str) -> bool:
    """Whether a secret can be sent there without eavesdroppers."""
    try:
        address = WebAddress.parse(url)
    except ValueError:
        return False
    return "?" not in address.target and (address.scheme == "https" or bool(_LOOPBACK.fullmatch(address.host)))


def _decoded(kind: type[T], body: bytes | bytearray) -> T | None:
    """The decoded body; None if it is something else, which is not shown, since it may hold a secret.

    Some issuers write numbers as text, which Pulsar's own client reads too.
    """
    try:
        return msgspec.json.decode(body, type=kind, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
