"""Who proposes, approves and aborts: a normalised name, and what vouches for it."""

from __future__ import annotations

import os
import pwd
import unicodedata
from dataclasses import dataclass
from typing import Final

from pulsar_advisor.model.errors import UsageError

UNAUTHENTICATED: Final = "unauthenticated:"

_INVISIBLE: Final = (
    frozenset((0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0))
    | frozenset(range(0xFE00, 0xFE10))
    | frozenset(range(0xE0100, 0xE01F0))
)
"""Invisible marks and letters (Unicode `Default_Ignorable_Code_Point`, and the empty Braille cell); the categories
`_REFUSED` cover the other invisible characters."""

_REFUSED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control and format characters, surrogates, private-use and unassigned code points, line and paragraph separators."""


@dataclass(frozen=True)
class Person:
    """A name, and what vouches for it: an authenticating system (`airflow`) or `unauthenticated:<system user>`.

    The name is NFKC-normalised, with single spaces inside. Raises `UsageError` if the name is empty or contains
    invisible characters: two names that look alike in a report must be the same.
    """

    name: str
    source: str

    def __post_init__(self) -> None:
        name = unicodedata.normalize("NFKC", self.name).strip()
        if not name:
            raise UsageError("a name is needed (--as NAME): the ledger keeps it beside what you do")
        for character in name:
            if unicodedata.category(character) in _REFUSED or ord(character) in _INVISIBLE:
                raise UsageError(
                    f"the name {name!a} holds the invisible character U+{ord(character):04X}: give the name without it"
                )
        object.__setattr__(self, "name", " ".join(name.split()))


def same_person(one: str, other: str) -> bool:
    """Whether two names belong to one person; also for names that an earlier release recorded as typed."""
    return _compared(one) == _compared(other)


def is_authenticated(source: str) -> bool:
    """Whether a system vouches for names from this source."""
    return not source.startswith(UNAUTHENTICATED)


def _compared(name: str) -> str:
    visible = "".join(
        character
        for character in unicodedata.normalize("NFKC", name)
        if unicodedata.category(character) not in _REFUSED and ord(character) not in _INVISIBLE
    )
    return " ".join(visible.split()).casefold()


def system_user() -> str:
    """The user this process runs as, by its uid; anyone can set `LOGNAME` or `USER` in the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # containers may run under a uid without a name
        return f"uid {os.getuid()}"


def person_on_command_line(name: str) -> Person:
    """A typed name, which no system vouches for; records the user of the machine with it. Raises `UsageError`."""
    return Person(name, UNAUTHENTICATED + system_user())
