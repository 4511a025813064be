"""The checks as the suites under `expectations/` define them: one JSON suite of Great Expectations per table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, NotRequired, TypedDict

from pulsar_advisor.documents.validation import CatalogueEntry, Effect, Scope, Severity
from pulsar_advisor.model.cluster.inputs import Input
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.canonical_json import Json
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


class Meta(TypedDict):
    """The advisor's metadata of an expectation; the fields are those of `Check`."""

    code: str
    scope: Scope
    effect: Effect
    about: NotRequired[list[Input]]
    title: str
    reason: str
    action: str


class Expectation(TypedDict):
    """An expectation in the form of Great Expectations."""

    type: str
    kwargs: Json
    severity: Severity
    meta: Meta


class Suite(TypedDict):
    """The expectations of a table, as in the file."""

    name: str
    expectations: list[Expectation]


@cache
def suites() -> Mapping[str, Suite]:
    """Table -> its suite, as in the file."""
    return {table: json.loads(_content(table)) for table in TABLES}


@cache
def checks() -> tuple[Check, ...]:
    """All checks in the order of the suites."""
    return tuple(
        Check(
            table=table,
            code=expectation["meta"]["code"],
            title=expectation["meta"]["title"],
            reason=expectation["meta"]["reason"],
            action=expectation["meta"]["action"],
            scope=expectation["meta"]["scope"],
            severity=expectation["severity"],
            effect=expectation["meta"]["effect"],
            about=tuple(expectation["meta"]["about"]) if "about" in expectation["meta"] else None,
            expectation=f"{expectation['type']} {json.dumps(expectation['kwargs'], sort_keys=True)}",
        )
        for table, suite in suites().items()
        for expectation in suite["expectations"]
    )


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
