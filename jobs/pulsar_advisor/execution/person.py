"""Who proposes, approves and aborts: a normalised name, and what vouches for it.

Two names are one person's if they can't be told apart on a page: see Unicode Technical Standard 39.
"""

from __future__ import annotations

import os
import pwd
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Final

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.plain_text import INVISIBLE

UNAUTHENTICATED: Final = "unauthenticated:"

_LONGEST_NAME: Final = 200
"""Maximum length of a name in the ledger's tables."""

_REFUSED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control and format characters, surrogates, private-use and unassigned code points, line and paragraph separators;
the other invisible characters are `INVISIBLE`."""


_WRITTEN_TOGETHER: Final = (
    frozenset({"LATIN", "HAN", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "HAN", "HANGUL"}),
    frozenset({"LATIN", "HAN", "BOPOMOFO"}),
)
"""Scripts that one name may mix: those of Japanese, Korean and Chinese (UTS 39, "highly restrictive")."""

_ANY_SCRIPT: Final = frozenset({"COMMON", "INHERITED"})
"""The "scripts" of digits, spaces and punctuation, and of marks that combine with letters of any script."""


@dataclass(frozen=True)
class Person:
    """A name, and what vouches for it: an authenticating system (`airflow`) or `unauthenticated:<system user>`.

    The name is NFKC-normalised, with single spaces inside. Raises `UsageError` if the name is empty, longer than the
    ledger keeps, contains invisible characters or mixes scripts: two names that look alike in a report must be the
    same.
    """

    name: str
    source: str

    def __str__(self) -> str:
        return f"{self.name} ({self.source})"

    def __post_init__(self) -> None:
        name = unicodedata.normalize("NFKC", self.name).strip()
        if not name:
            raise UsageError("give your name (--as NAME): the ledger records it with what you do")
        if len(name) > _LONGEST_NAME:
            raise UsageError(
                f"the name {name[:20]!a}... has {len(name)} characters: at most {_LONGEST_NAME} are allowed"
            )
        for character in name:
            if unicodedata.category(character) in _REFUSED or ord(character) in INVISIBLE:
                raise UsageError(
                    f"the name {name!a} contains the invisible character U+{ord(character):04X}: remove it"
                )
        scripts = _scripts(name)
        if len(scripts) > 1 and not any(scripts <= together for together in _WRITTEN_TOGETHER):
            raise UsageError(
                f"the name {name!a} mixes letters of {', '.join(sorted(map(str.title, scripts)))}, which look alike: "
                "write it in one script"
            )
        object.__setattr__(self, "name", " ".join(name.split()))


def same_person(one: str, other: str) -> bool:
    """Whether two names look alike and so belong to one person; earlier releases stored names as typed.

    Case, width, combining marks and invisible characters make no difference.
    """
    return not _looks(one).isdisjoint(_looks(other))


def is_authenticated(source: str) -> bool:
    """Whether a system vouches for names from this source."""
    return not source.startswith(UNAUTHENTICATED)


def account(name: str, source: str) -> str:
    """The account behind a name: the name itself where a system vouches for it, else the system user who typed it."""
    return name if is_authenticated(source) else source.removeprefix(UNAUTHENTICATED)


def _looks(name: str) -> frozenset[str]:
    """What a name looks like, as it is and in lower case: a capital I looks like l, a small one doesn't."""
    visible = "".join(
        character
        for character in unicodedata.normalize("NFKD", name)
        if unicodedata.category(character) not in _REFUSED and ord(character) not in INVISIBLE
    )
    plain = " ".join(visible.split())
    return frozenset({_skeleton(plain).casefold(), _skeleton(plain.casefold())})


def _skeleton(text: str) -> str:
    """Each character replaced by the one that stands for all that look like it (UTS 39), without combining marks."""
    prototypes = _prototypes()
    replaced = "".join(prototypes.get(character, character) for character in unicodedata.normalize("NFD", text))
    decomposed = unicodedata.normalize("NFD", replaced)
    # Marks of a single script, such as the vowels of Devanagari, are letters to its readers.
    return "".join(one for one in decomposed if not unicodedata.combining(one) or _script_of(one) not in _ANY_SCRIPT)


@cache
def _prototypes() -> dict[str, str]:
    """Each character that looks like others -> their prototype, one or more characters (Unicode's `confusables.txt`).

    The data lists look-alikes: for a prototype all of its look-alikes, for each of these only the prototype.
    """
    from confusable_homoglyphs.confusables import confusables_data

    alike = {text: [str(other["c"]) for other in others] for text, others in confusables_data.items()}
    found = {}
    for text, others in alike.items():
        if len(text) == len(others) == 1:
            [prototype] = others
            mutual = alike.get(prototype) == [text]  # in a pair, neither is marked as the prototype
            found[text] = min(text, prototype) if mutual else prototype
    return found


def _scripts(name: str) -> frozenset[str]:
    """The scripts of a name's letters."""
    return frozenset() if name.isascii() else frozenset(map(_script_of, name)) - _ANY_SCRIPT


def _script_of(character: str) -> str:
    from confusable_homoglyphs.categories import alias

    return str(alias(character))


def system_user() -> str:
    """The user this process runs as, by its uid; anyone can set `LOGNAME` or `USER` in the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # containers may run under a uid without a name
        return f"uid {os.getuid()}"


def person_on_command_line(name: str | None) -> Person:
    """A typed name, which no system vouches for, or without one that of the user of the machine, who is recorded too.

    Raises `UsageError`, also for a name that is given and empty, as by a variable that isn't set.
    """
    user = system_user()
    return Person(user if name is None else name, UNAUTHENTICATED + user)
