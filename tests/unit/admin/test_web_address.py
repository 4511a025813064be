"""An address means one host to whoever judges it and to whoever connects to it, or it is refused."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
import requests
import urllib3
from hypothesis import example, given
from hypothesis import strategies as st

from pulsar_advisor.admin.web_address import WebAddress, broker_at, broker_host
from unit.admin.hostile_locations import locations

BROKER = WebAddress.parse("http://Broker-1:8080/admin/v2/x?y=1")


def test_an_address_is_cut_into_parts_and_written_from_them() -> None:
    assert WebAddress("http", "broker-1", 8080, "/admin/v2/x?y=1") == BROKER
    assert str(BROKER) == "http://broker-1:8080/admin/v2/x?y=1"
    assert (BROKER.origin, BROKER.without_query) == ("http://broker-1:8080", "http://broker-1:8080/admin/v2/x")


def test_an_address_may_be_of_ipv6() -> None:
    assert WebAddress.parse("https://[2001:DB8::1]:8443/").host == "[2001:db8::1]"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("http://broker-2:8080/x", "http://broker-2:8080/x"),
        ("https://broker-2/x?a=b", "https://broker-2/x?a=b"),
        ("/other?a=/b", "http://broker-1:8080/other?a=/b"),
    ],
)
def test_a_redirect_leads_to_an_address_or_a_path(location: str, target: str) -> None:
    assert str(BROKER.redirected(location)) == target


@pytest.mark.parametrize(
    "location",
    [
        "",
        "x",
        "?x",
        "//evil/x",
        "///evil/x",
        r"/\evil/x",
        r"http://evil:1\@broker-1:8080/x",
        "http://user@broker-1:8080/x",
        "http://user:password@broker-1:8080/x",
        "http://broker-1:8080#@evil/x",
        "http://broker-1:8080\t/x",
        "http://broker-1:8080/x\r\nHost: evil",
        " http://broker-1:8080/x",
        "http://broker-1:8080/x\n",
        "http://bröker-1:8080/x",
        "http://broker-1%2eevil:8080/x",
        "http://[::1%25eth0]:8080/x",
        "http://[bad:8080/x",
        "http://[1]:8080/x",
        "http://broker-1:0/x",
        "http://broker-1:65536/x",
        "http://broker-1:٨٠/x",
        "http://broker-1:8080/a/../b",
        "http://broker-1:8080/a/%2e%2E/b",
        "/..",
        "ftp://broker-1/x",
        "http:broker-1/x",
        "http:///x",
    ],
)
def test_anything_else_is_refused(location: str) -> None:
    with pytest.raises(ValueError, match=r"^not a|^a path with"):
        BROKER.redirected(location)


@given(locations("broker-1:8080", "evil:80") | st.text(max_size=40))
@example("http://evil:1\\@broker-1:8080/x")
def test_every_parser_finds_the_same_host_in_what_is_not_refused(location: str) -> None:
    try:
        target = BROKER.redirected(location)
    except ValueError:
        return
    sent = requests.Request("GET", str(target)).prepare().url
    assert sent is not None
    hosts = {urlsplit(str(target)).hostname, urlsplit(sent).hostname, urllib3.util.parse_url(sent).host}
    assert {str(host).strip("[]") for host in hosts} == {target.host.strip("[]")}
    assert {urlsplit(str(target)).port, urlsplit(sent).port, urllib3.util.parse_url(sent).port} == {target.port}


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("http://Broker-1:8080", "Broker-1:8080"),
        ("https://b:8443/", "b:8443"),
        ("pulsar://b:6650", "b:6650"),
        ("", None),
    ],
)
def test_a_url_names_its_broker(url: str, broker: str | None) -> None:
    assert broker_at(url) == broker


@pytest.mark.parametrize("url", ["http://[bad", "http://a@b:1", "b:8080", "http://b:8080/x", "http://b:99999"])
def test_a_url_that_names_no_broker_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^not a broker's URL|between"):
        broker_at(url)


@pytest.mark.parametrize("broker", ["a", "a:b", "a:1@evil:2", "a:1/", "http://a:1", "a:0", "", "a:1\n"])
def test_a_brokers_id_is_host_and_port(broker: str) -> None:
    with pytest.raises(ValueError, match=r"is not a broker's id|between"):
        broker_host(broker)
