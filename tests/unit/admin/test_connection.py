"""A connection that can't be meant is refused, without a word of its secrets."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from pydantic import ValidationError

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.secret import secret_at
from pulsar_advisor.model.errors import UsageError


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"basic_user": "olive"}, "basic_user requires exactly one of basic_password_file, basic_password_env"),
        ({"basic_password_env": "OURS"}, "basic_user requires exactly one of"),
        ({"basic_user": "olive", "basic_password_env": "OURS", "basic_password_file": "f"}, "requires exactly one of"),
        ({"tls_cert_file": "f"}, "tls_cert_file and tls_key_file must be given together"),
    ],
)
def test_credentials_that_are_incomplete_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        AdminConnection(admin_urls=("https://broker:8443",), **fields)


def test_the_password_of_an_admin_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValidationError, match="must not carry a password") as error:
        AdminConnection(admin_urls=("http://admin:hunter2@broker:8080",))
    assert "hunter2" not in error.value.errors(include_input=False)[0]["msg"]


@pytest.mark.parametrize(
    "reference",
    [
        "env:eyJhbGciOiJIUzI1NiJ9.e30.hunter2",
        "env:postgresql://us:hunter2@db/ledger",
        "file:eyJhbGciOiJIUzI1NiJ9.e30.hunter2",
        "file:token:hunter2",
        "file:data:application/json;base64,hunter2",
        "env:of.a.pod-hunter2",
    ],
)
def test_a_secret_in_place_of_its_reference_is_not_shown(reference: str) -> None:
    with pytest.raises(UsageError, match="can't be read, and isn't shown, as it looks like the secret itself") as error:
        secret_at(reference)
    assert "hunter2" not in "".join(traceback.format_exception(error.value))
