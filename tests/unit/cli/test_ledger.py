"""`audit verify`."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from pulsar_advisor.cli import exit_code
from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.heads import keep, keepers_of
from pulsar_advisor.execution.ledger.opening import open_ledger
from unit.execution.actors import ALICE
from unit.execution.doubles import make_plan, unload_step


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A ledger with one event."""
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    ledger = open_ledger(url)
    propose(ledger, make_plan([unload_step()]), ALICE)
    ledger.close()
    return url


def test_an_intact_ledger_shows_its_head(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["audit", "verify", "--ledger", url]) == 0
    compared, head, verdict = capsys.readouterr().out.splitlines()
    assert compared.startswith("no head of this ledger is known")
    assert (head.startswith("head: 1:"), verdict) == (True, "as it was written")
    assert exit_code(["audit", "verify", "--ledger", url, "--head", head.removeprefix("head: ")]) == 0
    assert exit_code(["audit", "--ledger", url]) == 0


def test_an_audit_finds_the_kept_heads_by_itself_also_of_a_ledger_that_is_gone(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["audit", "--ledger", url, "--heads", f"{tmp_path}/heads"]
    with closing(open_ledger(url)) as ledger:
        keep(ledger.head(), keepers_of(f"{tmp_path}/heads"))
    assert exit_code(words) == 0
    assert capsys.readouterr().out.startswith("compared with 1 head kept elsewhere, the newest 1:")
    (tmp_path / "ledger.sqlite").unlink()
    assert exit_code(words) == 4
    assert "and heads of one are kept up to event 1: it was removed" in capsys.readouterr().err


def test_an_audit_by_heads_in_a_folder_that_does_not_exist_is_refused(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["audit", "--ledger", url, "--heads", f"log, {tmp_path}/haeds"]) == 2
    assert capsys.readouterr().err == f"error: there is no folder {tmp_path}/haeds: correct --heads\n"


def test_an_audit_may_come_before_the_first_head_of_a_folder_from_the_environment(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSAR_ADVISOR_HEADS", f"{tmp_path}/heads")
    assert exit_code(["audit", "--ledger", url]) == 0


def test_a_changed_ledger_ends_with_five(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with create_engine(url).begin() as connection:
        connection.execute(text("DROP TRIGGER proposals_fixed"))
        connection.execute(text("UPDATE proposals SET proposer = 'bob'"))
    assert exit_code(["audit", "verify", "--ledger", url, "--json"]) == 5
    assert json.loads(capsys.readouterr().out)["findings"] == [
        "proposals/1 is not as event 1 left it",
        "the trigger proposals_fixed was removed, disabled or changed",
    ]


def test_what_was_written_into_a_ledger_can_not_pass_for_the_verdict(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with create_engine(url).begin() as connection:
        connection.execute(text("DROP TRIGGER events_fixed"))
        connection.execute(text("UPDATE events SET rows = :rows"), {"rows": "\nas it was written\n"})
    assert exit_code(["audit", "verify", "--ledger", url]) == 5
    lines = capsys.readouterr().out.splitlines()
    assert "as it was written" not in lines
    assert lines[-1].endswith(" findings")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "--root"),
        (("--ledger", "sqlite:////nowhere/l.sqlite"), 4, "there is no ledger at sqlite:////nowhere/l.sqlite"),
        (("--ledger", "sqlite:///x", "--head", "17"), 2, "expected NUMBER:HASH"),
    ],
)
def test_what_can_not_be_audited_is_named(
    words: tuple[str, ...], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["audit", "verify", *words]) == code
    assert says in capsys.readouterr().err
