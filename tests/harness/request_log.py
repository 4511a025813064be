"""Reads what a broker's web service was asked, from its request log."""

from __future__ import annotations

import re
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from harness.admin_api import AdminApi

LOGGERS = ("org.eclipse.jetty.server.RequestLog", "org.apache.pulsar.broker.web.JettyRequestLogFactory")
"""The loggers of every request a broker answered, at INFO: Jetty's as text, from 5.0 on Pulsar's in the context."""
PATTERN = "%d{UNIX_MILLIS} %m %X%n"
"""The log4j2 pattern that `write_requests` expects."""

LOG_LIMIT_S = 10
_UNLOAD = re.compile(r"PUT /admin/v2/namespaces/(?P<bundle>[^/\s]+/[^/\s]+/[^/\s]+)/unload\b")
_WRITE = re.compile(r'"(?P<method>PUT|POST|DELETE|PATCH) (?P<path>\S+) [^"]*" (?P<status>\d{3}) ')
_WRITE_OF_5 = re.compile(
    r"\bmethod=(?P<method>PUT|POST|DELETE|PATCH), .*\bstatus=(?P<status>\d{3}), uri=\w+://[^/]+(?P<path>\S+), user="
)


def write_requests(log: Path) -> list[tuple[int, str]]:
    """The requests of one log that could change something: (milliseconds since the epoch, `METHOD path status`)."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [
        (int(line.split(" ", 1)[0]), f"{write['method']} {write['path']} {write['status']}")
        for line in lines
        if (write := _WRITE.search(line) or _WRITE_OF_5.search(line))
    ]


def unloads(requests: Iterable[str]) -> Counter[str]:
    """How often each bundle is unloaded by these requests, `METHOD path …`."""
    found = (_UNLOAD.match(request) for request in requests)
    return Counter(unload["bundle"] for unload in found if unload)


def catch_up(log: Path, admin: AdminApi, url: str) -> None:
    """Return when everything that the broker at `url` answered before is in its log.

    Asks for a page with a marker and waits until that request shows up.

    Raises:
        TimeoutError: it didn't.
    """
    marker = uuid.uuid4().hex
    admin.call("GET", "/status.html", url=url, params={"marker": marker})
    deadline = time.monotonic() + LOG_LIMIT_S
    while not (log.exists() and marker in log.read_text(encoding="utf-8")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{log} does not show the request with marker {marker} within {LOG_LIMIT_S} s")
        time.sleep(0.05)
