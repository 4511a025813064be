"""The clock of a broker is known to a second or so, and never guessed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.admin.clock import ClockDifference, clock_difference
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.transport import AdminTransport


def difference(address: str) -> ClockDifference | None:
    with AdminTransport(AdminConnection(admin_urls=(address,))) as transport:
        return transport.get("/admin/v2/brokers/version").clock


@contextmanager
def broker(date: str) -> Iterator[str]:
    """The web address of something that answers with this `Date`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)  # a broker sends its time with every answer
            self.send_header("Content-Length", "0")
            self.end_headers()

        def date_time_string(self, timestamp: float | None = None) -> str:
            return date

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("date", ["Fri Nov 27 19:19:37 2026", "Fri, 27 Nov 2026 19:19:37 -0000"])
def test_a_date_without_a_zone_is_in_utc_wherever_we_are(date: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert clock_difference(date, 1_795_807_177.0, 1_795_807_177.0) == ClockDifference(0.0, 1.0)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("offset_s", [-600, 0, 42])
def test_the_difference_is_found_within_its_bounds(offset_s: int) -> None:
    before_s = time.time()
    with broker(formatdate(before_s + offset_s, usegmt=True)) as address:
        found = difference(address)
    assert found is not None
    elapsed_s = time.time() - before_s  # the server's clock is frozen
    assert found.at_least_s - 1e-3 <= offset_s <= found.at_most_s + elapsed_s
    assert found.at_most_s - found.at_least_s <= 1 + elapsed_s


def test_an_answer_without_a_time_is_no_difference() -> None:
    with broker("soon") as address:
        assert difference(address) is None


@pytest.mark.parametrize(("bounds", "certain_s"), [((-0.4, 0.6), 0.0), ((41.5, 42.6), 41.5), ((-42.6, -41.5), -41.5)])
def test_only_what_is_certain_counts(bounds: tuple[float, float], certain_s: float) -> None:
    assert ClockDifference(*bounds).certain_s == certain_s


@pytest.mark.parametrize(
    "date",
    [
        "",
        "x",
        "Wed, 21 Oct 99999999999 07:28:00 GMT",
        "Wed, 99 Oct 2026 99:99:99 GMT",
        "Mon, 32 Jan 2026 00:00:00 GMT",
    ],
)
def test_an_invalid_date_gives_no_clock(date: str) -> None:
    assert clock_difference(date, 0.0, 1.0) is None


@given(date=st.text())
def test_no_date_breaks_anything(date: str) -> None:
    clock_difference(date, 0.0, 1.0)
