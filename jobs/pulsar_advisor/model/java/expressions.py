"""Java's regular expressions, as policies contain them, matched against whole names in bounded time.

Syntax that `regex` reads as Java does is supported, and `\\Q…\\E` is translated. Not supported, because `regex` reads
it differently or not at all: classes within classes and `&&`; `\\p \\P \\h \\H \\R \\X \\G \\g \\z \\v \\k \\c \\e
\\N` and `\\10` to `\\99`; the flags `d`, `u`, `U`, `x`; and flags that start in the middle, except `(?i:…)`. Such an
expression is unusable: it matches nothing, and the reason is reported. So is one that takes too long or too much
memory: a policy must not stall a run.

Source: `java.util.regex.Pattern` (Java 17 and 21).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import regex

from pulsar_advisor.model.cluster.cluster_state import Booleans

TIME_LIMIT_S: Final = 1.0
"""Of processor time, for one expression and all names it is matched against: a process that others keep from running
is no slow expression. A sound one takes about a microsecond per name."""

LONGEST: Final = 100_000
"""Characters of an expression, also once what `{n}` repeats is written out, as `regex` holds it in memory.

One that names a thousand brokers has some 50,000.
"""

_PIECE: Final = regex.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{0*(\d+)[^}]*\}|.", regex.ASCII | regex.DOTALL)
_QUOTED: Final = regex.compile(r"(?<!\\)((?:\\\\)*)\\Q(.*?)(?:\\E|\Z)", regex.DOTALL)
_UNESCAPED: Final = r"(?<!\\)(?:\\\\)*"
_READ_DIFFERENTLY: Final = regex.compile(
    rf"{_UNESCAPED}(?:\\(?:[pPhHRXGkzecNmMKLv0g]|[1-9]\d)|\[[^\]]*\[|&&|\{{(?!\d+(?:,\d*)?\}})"
    r"|\(\?(?!<?[=!]|[:>]|<[A-Za-z]|[ims]+:)(?!(?<=\A\(\?)[ims]+\)))"
)
_LITERAL: Final = regex.compile(r"[\w/-]*(?![*?+{])", regex.ASCII)


@dataclass(frozen=True, eq=False)
class Matched:
    """What expressions match."""

    matches: Booleans
    """Per name, whether an expression matches all of it."""
    unusable: Mapping[str, str]
    """Expression -> why it can't be applied here and therefore matches nothing."""


def matched(expressions: Iterable[str], names: Sequence[str]) -> Matched:
    """Which of `names` Java expressions match as a whole (`Matcher.matches`)."""
    matches = np.zeros(len(names), dtype=np.bool_)
    unusable = {}
    for expression in expressions:
        try:
            matches |= _matches(expression, names)
        except _Unusable as why:
            unusable[expression] = str(why)
    return Matched(matches, unusable)


class _Unusable(ValueError):
    """An expression that can't be applied; the message says why."""


def _matches(expression: str, names: Sequence[str]) -> Booleans:
    pattern = _compiled(expression)
    ends_at = time.thread_time() + TIME_LIMIT_S
    found = np.zeros(len(names), dtype=np.bool_)
    beginning = _beginning(expression)
    for row, name in [(row, name) for row, name in enumerate(names) if name.startswith(beginning)]:
        try:
            found[row] = pattern.fullmatch(name, timeout=max(0.0, ends_at - time.thread_time())) is not None
        except TimeoutError:
            raise _Unusable(f"matching took more than {TIME_LIMIT_S:g} s at '{name}' and was stopped") from None
    return found


def _beginning(expression: str) -> str:
    """The literal text that begins all that an expression matches: most policies are about a few of many names."""
    literal = _LITERAL.match(expression)
    return "" if literal is None or "|" in expression else literal[0]


def _compiled(expression: str) -> regex.Pattern[str]:
    if len(expression) > LONGEST:
        raise _Unusable(f"it has more than {LONGEST:,} characters")
    translated = _QUOTED.sub(lambda quoted: quoted[1] + regex.escape(quoted[2], special_only=False), expression)
    if _READ_DIFFERENTLY.search(translated):
        raise _Unusable("it uses syntax that is not supported here, or that Java interprets differently")
    if _length_written_out(translated) > LONGEST:
        raise _Unusable(f"with what it repeats written out, it has more than {LONGEST:,} characters")
    try:
        return regex.compile(translated, regex.ASCII)
    except (regex.error, ValueError, OverflowError) as error:  # also for a count beyond what a number can be
        raise _Unusable(str(error)) from None
    except RecursionError:
        raise _Unusable("it is nested too deeply") from None


def _length_written_out(expression: str) -> int:
    """The number of characters, escapes and classes once each `{n}` is written out; exact up to `LONGEST`."""
    groups, last = [0], 0
    for piece in _PIECE.finditer(expression):
        if piece[0] == "(":
            groups.append(0)
        elif piece[0] == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif piece[1] is not None:
            repeated = min(last * int(piece[1][:9]), LONGEST + 1)
            groups[-1] += repeated - last
            last = repeated
        else:
            last = 1
            groups[-1] += 1
    return sum(groups)
