"""Pulsar's own client authenticates as requests of the admin API do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from pulsar_advisor.admin.binary_client import binary_client
from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.transport import AdminTransport

USER = {"basic_user": "olive", "basic_password": SecretStr("a:b")}
CERTIFICATE = {"tls_cert_file": Path(__file__), "tls_key_file": Path(__file__)}


@pytest.mark.parametrize(
    ("credentials", "kind", "parts"),
    [(USER, "AuthenticationBasic", ("olive", "a:b")), (CERTIFICATE, "AuthenticationTLS", (__file__, __file__))],
)
def test_a_user_or_a_certificate_is_handed_on(
    monkeypatch: pytest.MonkeyPatch, credentials: dict[str, object], kind: str, parts: tuple[str, str]
) -> None:
    given: list[object] = []
    monkeypatch.setattr(f"pulsar.{kind}", lambda *its: given.append(its))
    monkeypatch.setattr("pulsar.Client", lambda url, **_: given.append(url))
    connection = AdminConnection.model_validate({"admin_urls": ("http://127.0.0.1:1",), **credentials})
    with AdminTransport(connection) as transport:
        binary_client(transport, "pulsar://127.0.0.1:6650")
    assert given == [parts, "pulsar://127.0.0.1:6650"]


@pytest.mark.parametrize("own", [{"tls_ca_file": Path(__file__)}, {}])
def test_a_certificate_is_shown_beside_a_token_and_the_same_authorities_are_trusted(
    monkeypatch: pytest.MonkeyPatch, own: dict[str, Path]
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", __file__)
    given: dict[str, object] = {}
    monkeypatch.setattr("pulsar.Client", lambda _, **options: given.update(options))
    connection = AdminConnection(admin_urls=("https://127.0.0.1:1",), token=SecretStr("abc"), **CERTIFICATE, **own)
    with AdminTransport(connection) as transport:
        binary_client(transport, "pulsar+ssl://127.0.0.1:6651")
    files = [given.get(f"tls_{name}_file_path") for name in ("trust_certs", "certificate", "private_key")]
    assert files == [__file__, __file__, __file__]
