"""Webhooks: a message, signed on request, to the one address that the operator chose.

The host is resolved once, and the checked address is the one connected to, so that a name can't change in between.
Redirects are not followed, and the answer's body is not read.

Source of the message, its headers and its signature: Standard Webhooks 1.0, which has libraries for receivers.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import socket
import ssl
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any, Final

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from pulsar_advisor.admin.secret import secret_at
from pulsar_advisor.admin.time_limit import FinalResponse, ended_after, shut_down
from pulsar_advisor.admin.web_address import WebAddress
from pulsar_advisor.model.errors import AdvisorError, UsageError
from pulsar_advisor.model.plans.canonical_json import canonical_json
from pulsar_advisor.model.text.plain_text import plain

ATTEMPTS: Final = 3
TIMEOUT_S: Final = 10.0
"""For one attempt after the name is resolved, however slowly the answer arrives; only its status line counts."""

_KEY: Final = re.compile(r"whsec_([A-Za-z0-9+/]+={0,2})")
_KEY_BYTES: Final = range(24, 65)
_KEY_FORM: Final = "expected whsec_ and 24 to 64 random bytes in base64: echo whsec_$(openssl rand -base64 32)"

_NEVER: Final = tuple(
    map(
        ip_network,
        (
            *("169.254.0.0/16", "fe80::/10"),  # link-local: metadata services of most clouds
            *("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128"),
            *("0.0.0.0/8", "::/128", "224.0.0.0/4", "ff00::/8", "240.0.0.0/4"),  # no host, or many
            # Teredo, 6to4 and a network's own NAT64 (RFC 8215): any IPv4 address may be behind them.
            *("2001::/32", "2002::/16", "64:ff9b:1::/48"),
        ),
    )
)
_Place = tuple[socket.AddressFamily, Any]
"""The address of a socket, as the operating system takes it."""

_TRANSLATED: Final = ip_network("64:ff9b::/96")
"""NAT64: the last four bytes are an IPv4 address."""


class NotDelivered(AdvisorError):
    """The receiver of a webhook didn't accept the message."""


class _TryAgain(NotDelivered):
    """The receiver wasn't reached, or can't accept messages at the moment."""


@dataclass(frozen=True)
class Webhook:
    """Where messages go, and the key that signs them. Raises `UsageError` if either can't be read or used."""

    address: str = field(repr=False)
    """An https URL, or `env:NAME` or `file:PATH` where it is kept: often its path is the receiver's password. Plain
    http goes to the loopback interface only."""
    key: str | None = None
    """`env:NAME` or `file:PATH`, where `whsec_…` is kept."""
    tls_ca_file: Path | None = None
    """Certificates to trust, instead of the system's."""

    def __post_init__(self) -> None:
        self._destination()
        self._signing_key()

    @property
    def place(self) -> str:
        """Scheme, host and port: what may be shown."""
        return self._destination().origin

    def send(self, kind: str, data: Mapping[str, str | int | bool | None]) -> None:
        """Send `{type, timestamp, data}`; again, with the same id, if the receiver wasn't reached or is overloaded.

        Raises `NotDelivered`, `UsageError`. Takes at most half a minute, plus the system's time limit for name servers.
        """
        shown = {name: plain(value) if isinstance(value, str) else value for name, value in data.items()}
        body = canonical_json({"type": kind, "timestamp": datetime.now(UTC).isoformat(), "data": shown})
        identifier = f"msg_{uuid.uuid4().hex}"
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.2, max=2),
            retry=retry_if_exception_type(_TryAgain),
            sleep=time.sleep,
            reraise=True,
        )
        retrying(self._send_once, identifier, body)

    def _send_once(self, identifier: str, body: bytes) -> None:
        address, key, seconds = self._destination(), self._signing_key(), int(time.time())
        headers = {
            "Host": address.origin.partition("://")[2],
            "Content-Type": "application/json",
            "User-Agent": "pulsar-advisor",
            "Connection": "close",
            "webhook-id": identifier,
            "webhook-timestamp": str(seconds),
        }
        if key is not None:
            headers["webhook-signature"] = signature(key, identifier, seconds, body)
        where = f"webhook {address.origin}"
        try:
            status = _post(address, headers, body, self.tls_ca_file)
        except ssl.SSLCertVerificationError as error:
            raise NotDelivered(f"{where}: TLS failed ({error.verify_message}): check host name and CA file") from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise _TryAgain(f"{where}: no answer ({reason}): check that it can be reached from here") from error
        if 300 <= status < 400:
            raise NotDelivered(
                f"{where}: returned a redirect ({status}), which is not followed: "
                "if you trust its target, configure that address"
            )
        if status in (408, 429) or status >= 500:
            raise _TryAgain(f"{where}: returned {status}: check the receiver's log")
        if not 200 <= status < 300:
            raise NotDelivered(f"{where}: returned {status}: check the address and the key the receiver expects")

    def _destination(self) -> WebAddress:
        text = secret_at(self.address) if self.address.startswith(("env:", "file:")) else self.address
        try:
            return WebAddress.parse(text)
        except ValueError:
            raise UsageError(
                "not a webhook address: expected https://host/path, or env:NAME or file:PATH that holds it"
            ) from None

    def _signing_key(self) -> bytes | None:
        if self.key is None:
            return None
        found = _KEY.fullmatch(secret_at(self.key))
        with suppress(binascii.Error):
            key = base64.b64decode(found[1], validate=True) if found else b""
            if len(key) in _KEY_BYTES:
                return key
        raise UsageError(f"{self.key} does not hold a webhook's key: {_KEY_FORM}")


def signature(key: bytes, identifier: str, seconds: int, body: bytes) -> str:
    """The header `webhook-signature`: HMAC-SHA256 over id, time and body."""
    signed = f"{identifier}.{seconds}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def _post(address: WebAddress, headers: Mapping[str, str], body: bytes, tls_ca_file: Path | None) -> int:
    """The status of the answer. Raises `NotDelivered` for a forbidden place, `OSError`, `HTTPException`."""
    places = _allowed_places(address)
    deadline = time.monotonic() + TIMEOUT_S
    with _connected(places, deadline) as plain_socket:
        plain_socket.settimeout(max(deadline - time.monotonic(), 0.001))
        sock = plain_socket
        if address.scheme == "https":
            context = _trusting(tls_ca_file)
            sock = context.wrap_socket(plain_socket, server_hostname=address.host.strip("[]"))
        with sock, ended_after(deadline - time.monotonic(), partial(shut_down, sock)):
            connection = HTTPConnection(address.host)
            connection.sock, connection.auto_open = sock, 0
            connection.request("POST", address.target or "/", body, headers)
            return _status(sock)


def _status(sock: socket.socket) -> int:
    """What the status line of an answer says, also if the connection breaks after it: the message has arrived."""
    with FinalResponse(sock, method="POST") as answer:
        try:
            answer.begin()
        except (OSError, HTTPException):
            if not str(answer.status).isdigit():  # the status line wasn't read
                raise
        return answer.status


def _allowed_places(address: WebAddress) -> list[_Place]:
    """What the host resolves to, once; refused as a whole if any address is forbidden."""
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(address.host.strip("[]"), port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # for a label that is empty or too long
        raise NotDelivered(f"webhook {address.origin}: invalid host name: check the address") from error
    for *_, place in found:
        ip = _embedded_ipv4(ip_address(str(place[0])))
        if any(ip in network for network in _NEVER):
            raise NotDelivered(
                f"webhook {address.origin}: {ip} is a link-local, metadata or multicast address: not sent"
            )
        if address.scheme == "http" and not ip.is_loopback:
            raise NotDelivered(
                f"webhook {address.origin}: {ip} is on another machine, and http isn't encrypted: give an https address"
            )
    return [(family, place) for family, _, _, _, place in found]


def _embedded_ipv4(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address behind one that is written as IPv6."""
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            return ip.ipv4_mapped
        if ip in _TRANSLATED:
            return IPv4Address(ip.packed[-4:])
    return ip


def _connected(places: list[_Place], deadline: float) -> socket.socket:
    """A connection to the first place that accepts one in its share of the time. Raises the last place's `OSError`."""
    refused: OSError = OSError("the host name has no address")
    for index, (family, place) in enumerate(places):
        try:
            return _connected_to(family, place, (deadline - time.monotonic()) / (len(places) - index))
        except OSError as error:  # also of a machine without IPv6
            refused = error
    raise refused


def _connected_to(family: socket.AddressFamily, place: Any, seconds: float) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(max(seconds, 0.001))
        sock.connect(place)
    except BaseException:
        sock.close()
        raise
    return sock


def _trusting(tls_ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=tls_ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise UsageError(
            f"{tls_ca_file} can't be used as the CA file of a webhook: {error.strerror or error}"
        ) from error
