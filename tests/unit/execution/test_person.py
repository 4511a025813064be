from __future__ import annotations

import os
import pwd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_advisor.execution.person import Person, is_authenticated, person_on_command_line, same_person, system_user
from pulsar_advisor.model.errors import UsageError


def test_a_name_on_the_command_line_goes_with_the_user_of_the_process_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(variable, "ceo")
    me = pwd.getpwuid(os.getuid()).pw_name
    assert person_on_command_line(" Carol ") == Person("Carol", f"unauthenticated:{me}")


def test_a_user_without_a_name_is_known_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    assert system_user() == "uid 4000000"


@pytest.mark.parametrize("name", ["", "  ", "\u00a0"])
def test_a_name_can_not_be_empty(name: str) -> None:
    with pytest.raises(UsageError, match="give your name"):
        person_on_command_line(name)


def test_a_name_is_no_longer_than_the_ledger_keeps() -> None:
    assert Person("n" * 200, "airflow").name == "n" * 200
    with pytest.raises(UsageError, match=r"'n{20}'\.\.\. has 201 characters: at most 200"):
        Person("n" * 201, "airflow")


@pytest.mark.parametrize(
    "mark", ["\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\u00ad", "\u034f", "\u3164", "\ufe0f", "\u2800", "\x07"]
)
def test_a_character_that_can_not_be_seen_is_refused(mark: str) -> None:
    with pytest.raises(UsageError, match=r"contains the invisible character U\+"):
        Person(f"root{mark}", "airflow")


@pytest.mark.parametrize(
    ("typed", "kept"),
    [("ａｌｉｃｅ", "alice"), ("Zoe\u0308", "Zo\u00eb"), ("Anna   Lee", "Anna Lee"), ("李雷", "李雷")],
)
def test_a_name_has_one_spelling(typed: str, kept: str) -> None:
    assert Person(typed, "airflow").name == kept


@pytest.mark.parametrize(
    "other",
    [
        *("ALICE", "ａlice", " alice", "ali\u200bce", "alice\ufeff", "ali\u202ece"),
        *("\u0430lice", "al\u0456ce", "ali\u0441e", "alic\u0435", "\u0391lice", "AIice", "a1ice", "𝖆𝖑𝖎𝖈𝖊", "ⓐⓛⓘⓒⓔ"),
        *("al\u0131ce", "alic\u0332e", "alice\u0301", "a\u0338lice"),
    ],
    ids=ascii,
)
def test_names_that_look_alike_are_one_person(other: str) -> None:
    assert same_person("alice", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u0441\u043e\u0440\u0430", "copa"),  # Cyrillic throughout
        ("mark", "rnark"),
        ("jos\u00e9", "jose"),
        ("0scar", "Oscar"),
    ],
)
def test_neither_a_script_of_its_letters_nor_two_letters_for_one_make_a_person_two(one: str, other: str) -> None:
    assert same_person(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("alice", "alicia"), ("oleg", "\u043e\u043b\u0435\u0433"), ("李雷", "韩梅梅"), ("रवि", "रवी"), ("bob", "rob")],
)
def test_different_names_are_different_people(one: str, other: str) -> None:
    assert not same_person(one, other)


@pytest.mark.parametrize("name", ["\u0430lice", "bo\u03b2", "Anna \u041b\u0438", "\u13a0nna"], ids=ascii)
def test_a_name_that_mixes_scripts_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"mixes letters of \w+, \w+, which look alike"):
        Person(name, "airflow")


@pytest.mark.parametrize("name", ["Олег", "李雷 Lee", "たなか 花子 Hana", "김 Kim", "O'Neil-1", "Zoë", "Søren", "रवि"])
def test_a_name_in_the_scripts_of_one_language_is_kept(name: str) -> None:
    assert Person(name, "airflow").name == name


@given(st.text(min_size=1, max_size=20))
def test_a_name_that_is_kept_is_kept_for_good(name: str) -> None:
    try:
        kept = Person(name, "airflow").name
    except UsageError:
        return
    assert Person(kept, "airflow").name == kept
    assert same_person(name, kept)


@pytest.mark.parametrize(
    ("source", "vouched"), [("airflow", True), ("policy:00", True), ("unauthenticated:ops", False)]
)
def test_a_typed_name_is_not_authenticated(source: str, vouched: bool) -> None:
    assert is_authenticated(source) == vouched
