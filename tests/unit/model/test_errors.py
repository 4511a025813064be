"""What an error says of names from elsewhere is one line that controls nothing, wherever it is shown."""

from __future__ import annotations

import errno
import os
import pickle
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from pulsar_advisor.model.errors import Refused, StorageError, attempting


def test_a_name_in_a_message_can_begin_no_line_of_its_own_and_control_no_terminal() -> None:
    assert str(Refused("no bundle 'x\nerror: none\x1b[2J'")) == r"no bundle 'x\nerror: none\x1b[2J'"


def test_an_error_comes_back_unchanged_from_another_process() -> None:
    assert str(pickle.loads(pickle.dumps(Refused("a\nb")))) == r"a\nb"


@pytest.mark.parametrize(
    ("otherwise", "says"), [("", "can't write /a: disk full"), ("free some", "can't write /a: disk full: free some")]
)
def test_what_the_system_refuses_is_a_failure_of_the_storage(otherwise: str, says: str) -> None:
    with pytest.raises(StorageError) as failure, attempting("write /a", otherwise):
        raise OSError(errno.ENOSPC, "disk full", "/a")
    assert str(failure.value) == says


def test_a_failure_without_the_systems_words_says_what_it_is() -> None:
    with pytest.raises(StorageError, match=r"^can't read /a: the lock is lost$"), attempting("read /a"):
        raise OSError("the lock is lost")


@pytest.mark.parametrize("lies_in", ["", "new/folder"])
def test_of_what_is_kept_from_a_user_it_is_said_whose_it_is(
    tmp_path: Path, lies_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = {tmp_path.stat().st_uid: "pulsar", 1002: "ops"}
    monkeypatch.setattr(os, "geteuid", lambda: 1002)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_name=users[user]))
    with pytest.raises(StorageError) as failure, attempting("write /a"):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / lies_in / "file"))
    whose = f"{tmp_path} belongs to pulsar, this process to ops: change either, or the mode"
    assert str(failure.value) == f"can't write /a: Permission denied: {whose}"


def test_of_what_is_the_users_own_no_owner_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"^can't write /a: Permission denied$"), attempting("write /a"):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))


def test_a_user_without_a_name_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    with pytest.raises(StorageError, match="this process to uid 4000000000"), attempting("write /a"):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))
