"""What one check asserts, why, and what to do about it: for people at a terminal."""

from __future__ import annotations

from pulsar_advisor.documents.validation import CatalogueEntry
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.nearest import nearest
from pulsar_advisor.quality.checks import Check, checks


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


def explain(name: str) -> CatalogueEntry:
    """The entry of a check, by its name as in `named`."""
    check = named(name)
    return CatalogueEntry(
        check=check.name,
        title=check.title,
        severity=check.severity,
        scope=check.scope,
        affects=check.resting,
        why=check.reason,
        action=check.action,
        source=f"expectations/{check.table}.json: {check.expectation}",
    )
