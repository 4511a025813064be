"""A ledger's password stays out of command lines and messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_advisor.execution.ledger.address import ledger_url, shown_in_process_list, without_secrets
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.model.errors import AdvisorError, UsageError

URL = "postgresql+psycopg://advisor:hunter2@127.0.0.1:1/x?password=hunter2"


def test_an_address_may_be_kept_in_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_LEDGER", URL)
    (tmp_path / "ledger").write_text(f"{URL}\n")
    assert ledger_url("env:OUR_LEDGER") == ledger_url(f"file:{tmp_path}/ledger") == ledger_url(URL)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ledger_url("file:~/ledger") == ledger_url(URL)
    assert shown_in_process_list("env:OUR_LEDGER") == "env:OUR_LEDGER"


def test_a_file_in_a_home_that_is_not_known_is_usage() -> None:
    with pytest.raises(UsageError, match="file:~no-such-user/x: there is no home directory for ~no-such-user/x"):
        ledger_url("file:~no-such-user/x")


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_ledger_in_memory_is_none(address: str) -> None:
    with pytest.raises(UsageError, match="names no file, so nothing would be kept"):
        ledger_url(address)


def test_an_address_without_a_password_may_be_shown() -> None:
    assert shown_in_process_list("postgresql+psycopg://advisor@db/x") == "postgresql+psycopg://advisor@db/x"


@pytest.mark.parametrize("address", [URL, "postgresql://a:hunter2@db/x", "postgresql://a@db/x?sslpassword=hunter2"])
def test_an_address_with_a_password_is_no_option(address: str) -> None:
    with pytest.raises(UsageError, match="give env:NAME or file:PATH") as error:
        shown_in_process_list(address)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "address",
    [
        "hunter2",
        "postgresql//advisor:hunter2@db",
        "postgresql://advisor:p@db:hunter2/x",
        "postgresql://advisor:p@hunter2@127.0.0.1:1/x",
        "nosuch://advisor:hunter2@db/x?password=hunter2",
        "nosuch://db/x?password=hunter2",
        "sqlite:////proc/no/f?key=hunter2",
        URL,
        "env:OUR_LEDGER",
    ],
)
def test_no_message_shows_a_password(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_LEDGER", "hunter2")
    with pytest.raises(AdvisorError) as error:
        open_ledger(address)
    assert "hunter2" not in str(error.value)


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert without_secrets(ledger_url(URL)) == "postgresql+psycopg://advisor:***@127.0.0.1:1/x"
