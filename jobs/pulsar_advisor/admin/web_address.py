"""Web addresses of a cluster: parsed once, by a grammar so narrow that every parser reads the same host from them.

The check whether a host may get our credentials and the client that connects must read an address alike. So an address
is split into its parts here, judged by them, and rebuilt from them. Source of the grammar: RFC 3986, without user
information, fragments, zone ids and percent-encoded hosts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from typing import Final, Self
from urllib.parse import unquote

_HOST: Final = r"(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
_PATH: Final = r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@/%-]*)?"
_QUERY: Final = r"(?:\?[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*)?"

_ADDRESS: Final = re.compile(rf"(?P<scheme>https?)://{_HOST}(?P<target>{_PATH}{_QUERY})")
_TARGET: Final = re.compile(rf"(?!//){_PATH}{_QUERY}")
_BROKER: Final = re.compile(_HOST)
_SERVICE: Final = re.compile(rf"[a-z+]{{1,16}}://{_HOST}/?")
_GREATEST_PORT: Final = 65535


@dataclass(frozen=True)
class WebAddress:
    """An http(s) address in its parts."""

    scheme: str
    host: str
    """Lower case; an IPv6 address in brackets."""
    port: int | None
    target: str
    """Path and query: everything after the host."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """An absolute address. Raises `ValueError` with a message that doesn't repeat the address."""
        found = _ADDRESS.fullmatch(text)
        if found is None:
            raise ValueError("not an address of the form http(s)://host:port/path")
        return cls(found["scheme"], *_host_and_port(found), _checked(found["target"]))

    def redirected(self, location: str) -> WebAddress:
        """The target of a `Location` in a response from this address: absolute, or a path. Raises `ValueError`."""
        if location.startswith("/") and _TARGET.fullmatch(location):
            return replace(self, target=_checked(location))
        return WebAddress.parse(location)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.host}{'' if self.port is None else f':{self.port}'}"

    @property
    def without_query(self) -> str:
        """The address in a form that is safe to show."""
        return self.origin + self.target.partition("?")[0]

    def __str__(self) -> str:
        return self.origin + self.target


def broker_host(broker: str) -> str:
    """The host in a broker's id (`host:port`). Raises `ValueError` if it isn't one."""
    found = _BROKER.fullmatch(broker)
    if found is None or found["port"] is None:
        raise ValueError(f"{broker[:100]!r} is not a broker's id of the form host:port")
    return _host_and_port(found)[0]


def broker_at(url: str) -> str | None:
    """The `host:port` in a broker's own URL of any scheme; None for an empty one. Raises `ValueError`."""
    if not url:
        return None
    found = _SERVICE.fullmatch(url)
    if found is None:
        raise ValueError("not a broker's URL of the form http://host:port")
    _host_and_port(found)
    return found["host"] if found["port"] is None else f"{found['host']}:{found['port']}"


def _checked(target: str) -> str:
    """The target itself, unless its path has dot segments, which the HTTP client would collapse into another path."""
    if {".", ".."}.intersection(map(unquote, target.partition("?")[0].split("/"))):
        raise ValueError("a path with . or ..")
    return target


def _host_and_port(found: re.Match[str]) -> tuple[str, int | None]:
    host, port = found["host"].lower(), None if found["port"] is None else int(found["port"])
    if host.startswith("["):
        try:
            IPv6Address(host[1:-1])
        except ValueError:
            raise ValueError("not an IPv6 address in brackets") from None
    if port is not None and not 0 < port <= _GREATEST_PORT:
        raise ValueError("not a port between 1 and 65535")
    return host, port
