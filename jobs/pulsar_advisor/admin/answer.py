"""What a broker answered to one call; an error in one line, with advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from pulsar_advisor.admin.clock import ClockDifference
from pulsar_advisor.model.errors import ClusterUnreachable
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.some_of import beginning

_REDIRECTS_OF_PROXIES: Final = frozenset({301, 302, 303})
"""Redirects by proxies, for example from http to https, or to a login page."""
TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses after which another try, or another broker, may answer."""
_LONGEST_REASON: Final = 500
"""Characters of an error in a message: a bundle's name in it may take half of them."""


class _Error(msgspec.Struct):
    reason: str | None = None


_ERROR: Final = msgspec.json.Decoder(_Error)


@dataclass(frozen=True)
class Answer:
    """A broker's response, after redirects. `url` is the address that answered, without the query."""

    status: int
    url: str
    body: bytes | bytearray
    clock: ClockDifference | None = None
    """The clock of the server that answered; None without a usable `Date`."""
    redirects: int = 0
    """How many brokers saw the call before this one."""
    retry_after_s: float = 0.0
    """When to send it again at the earliest, as proxies and gateways say; up to an hour, 0 without a word of it."""

    @property
    def text(self) -> str:
        """The body as text; several endpoints return bare text although they declare JSON."""
        return self.body.decode("utf-8", errors="replace")

    @property
    def reason(self) -> str:
        """First line of Pulsar's error message, as plain text; empty if its web server answered instead."""
        try:
            text = _ERROR.decode(self.body).reason or ""
        except (msgspec.ValidationError, RecursionError):
            text = ""  # JSON, but not from Pulsar
        except (msgspec.DecodeError, UnicodeDecodeError):
            text = "" if self.body.lstrip()[:1] == b"<" else self.text
        lines = text.strip().splitlines()
        return plain(beginning(lines[0], _LONGEST_REASON)) if lines else ""

    @property
    def is_pulsars_own(self) -> bool:
        """Whether an error is Pulsar's own, JSON with a reason: web servers and proxies answer with a page or text."""
        return bool(self.reason) and self.body.lstrip()[:1] == b"{"

    @property
    def is_absence(self) -> bool:
        """Whether Pulsar says that there is no such thing."""
        return self.status == 404 and self.is_pulsars_own


class ErrorAnswer(ClusterUnreachable):
    """A broker answered, but with an error status.

    `own_words` leaves out the broker's message, which may hold anything, so it is safe to write to disk. `is_absence`:
    Pulsar itself says that there is no such thing; a proxy in front of it that doesn't know the path answers 404 too.
    """

    def __init__(self, message: str, *, status: int, is_absence: bool, own_words: str) -> None:
        super().__init__(message)
        self.status = status
        self.is_absence = is_absence
        self.own_words = own_words


def error_answer(answer: Answer, *, has_credentials: bool) -> ErrorAnswer:
    """The error that an answer of an unexpected status is; `has_credentials`: whether the call had any."""
    said = f" ({answer.reason})" if answer.reason else ""
    return ErrorAnswer(
        _explanation(answer, said, has_credentials),
        status=answer.status,
        is_absence=answer.is_absence,
        own_words=_explanation(answer, "", has_credentials),
    )


def _explanation(answer: Answer, said: str, has_credentials: bool) -> str:
    # Without valid credentials the web server answers (a page, text, its own JSON); Pulsar itself gives a reason.
    if answer.status == 401 and answer.is_pulsars_own:
        return f"{answer.url}: 401, the role lacks permission{said}: use the credentials of a super-user"
    if answer.status == 401 and has_credentials:
        todo = "check that the token or password belongs to this cluster and hasn't expired; the broker's log says why"
        return f"{answer.url}: 401, credentials rejected: {todo}"
    if answer.status == 401:
        return f"{answer.url}: 401, credentials required: give the token file of a super-user"
    if answer.status == 403:
        return f"{answer.url}: 403, forbidden{said}: the role lacks permission, or policies are read-only"
    if answer.status in _REDIRECTS_OF_PROXIES:
        return f"{answer.url}: {answer.status}, redirected by a proxy, not a broker: give the address it redirects to"
    if answer.status == 404 and not answer.is_pulsars_own:
        return f"{answer.url}: 404, not found{said}: check that this is the admin URL of a Pulsar broker"
    return f"{answer.url}: {answer.status}{said}"
