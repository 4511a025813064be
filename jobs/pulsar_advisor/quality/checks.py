"""The checks as the suites under `expectations/` define them: one JSON suite of Great Expectations per table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, TypedDict

from pydantic import TypeAdapter, ValidationError

from pulsar_advisor.documents.validation import CatalogueEntry, Effect, Scope, Severity
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.canonical_json import Json
from pulsar_advisor.model.text.problems import problems
from pulsar_advisor.model.text.some_of import nearest

TABLES: Final = ("brokers", "bundles", "capture", "namespaces", "policies", "problems", "settings", "topics")
"""Tables that have a suite."""


@dataclass(frozen=True)
class Check:
    """One expectation: what it asserts about a table, and what its failure means to an operator."""

    table: str
    code: str
    title: str
    """What holds when the check passes."""
    reason: str
    """How advice goes wrong when it fails; the Pulsar issue, pull request or PIP that shows it, if any."""
    action: str
    """What an operator should do about it."""
    scope: Scope
    """What a failing row affects."""
    severity: Severity
    effect: Effect
    """What happens to the failing rows."""
    about: tuple[Input, ...] | None
    """The inputs it is about: a step rests on the checks of the inputs it reads. None: the snapshot as a whole, so
    every step rests on it; empty: no step does."""
    expectation: str
    """Type of the expectation and its arguments, as in the suite."""

    @property
    def name(self) -> str:
        """`<table>.<code>`, the name of the check in results."""
        return f"{self.table}.{self.code}"

    @property
    def resting(self) -> str:
        """The steps that rest on it, in words."""
        if self.about is None:
            return "every step"
        return f"steps that read {', '.join(self.about)}" if self.about else "no step"

    @property
    def entry(self) -> CatalogueEntry:
        """The check for people at a terminal."""
        return CatalogueEntry(
            check=self.name,
            title=self.title,
            severity=self.severity,
            scope=self.scope,
            affects=self.resting,
            why=self.reason,
            action=self.action,
            source=f"expectations/{self.table}.json: {self.expectation}",
        )


class Expectation(TypedDict):
    """An expectation in the form of Great Expectations; `meta` has fields of `Check`."""

    type: str
    kwargs: Json
    severity: Severity
    meta: Json


_CHECK: Final = TypeAdapter(Check)


@cache
def suites() -> Mapping[str, Sequence[Expectation]]:
    """Table -> the expectations of its suite, as in the file. Raises `UsageError` for a file that is no suite."""
    found = {}
    for table in TABLES:
        with _naming(table):
            found[table] = json.loads(_content(table))["expectations"]
    return found


@cache
def checks() -> tuple[Check, ...]:
    """All checks in the order of the suites. Raises `UsageError` for one that isn't as `Check` says."""
    found = []
    for table, suite in suites().items():
        for one in suite:
            with _naming(table):
                fields = {
                    "about": None,
                    **one["meta"],
                    "table": table,
                    "severity": one["severity"],
                    "expectation": f"{one['type']} {json.dumps(one['kwargs'], sort_keys=True)}",
                }
                found.append(_CHECK.validate_python(fields))
    return tuple(found)


@contextmanager
def _naming(table: str) -> Iterator[None]:
    """Name the suite in which somebody has made a mistake."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        why = problems(error)[0] if isinstance(error, ValidationError) else error
        raise UsageError(f"expectations/{table}.json is not a suite of checks ({why}): correct it") from error


def checks_of(table: str) -> tuple[Check, ...]:
    """A table's checks, in the order of its suite."""
    return tuple(check for check in checks() if check.table == table)


def named(name: str) -> Check:
    """The check with this name, `<table>.<code>`, or with this code if only one table has it.

    Raises `UsageError` with a similar name for an unknown one, and with all matches for an ambiguous one.
    """
    found = [check for check in checks() if name in (check.name, check.code)]
    if not found:
        close = nearest(name, (known for check in checks() for known in (check.name, check.code)))
        raise UsageError(f"there is no check '{name}'{close}; docs/checks.md lists all checks")
    if len(found) > 1:
        raise UsageError(f"'{name}' may be any of {', '.join(check.name for check in found)}: give the full name")
    return found[0]


def suites_sha256() -> str:
    """SHA-256 of all suites, files in the order of `TABLES`."""
    return hashlib.sha256(b"".join(_content(table) for table in TABLES)).hexdigest()


def _content(table: str) -> bytes:
    return (resources.files("pulsar_advisor.quality") / "suites" / f"{table}.json").read_bytes()
