"""A connection that can't be meant is refused, without a word of its secrets."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pulsar_advisor.admin.connection import AdminConnection


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
