"""A ledger's address: a SQLAlchemy URL, or a reference to one, so that no command line shows its password."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from pulsar_advisor.admin.secret import secret_at
from pulsar_advisor.model.errors import UsageError

_FORMS = "expected sqlite:///FILE or postgresql://…, or env:NAME or file:PATH where that is kept"
_IS_DECODED: Final = make_url("sqlite:///%25").database == "%"
"""Whether SQLAlchemy decodes the path of a file: from 2.1 on. Airflow's constraints have 2.0."""


def ledger_url(address: str) -> URL:
    """The URL itself, or the one in `env:NAME` (an environment variable) or `file:PATH`.

    Raises `UsageError`, also for SQLite without a file: in memory, all that is recorded would be lost at once.
    """
    kind, _, place = address.partition(":")
    if kind in ("env", "file"):
        address = secret_at(address)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):  # their texts contain parts of the URL, maybe the password
        shown = f"what {kind}:{place} holds" if kind in ("env", "file") else "what was given"
        raise UsageError(f"{shown} is not a ledger URL; {_FORMS}") from None
    if "@" in (url.host or ""):
        raise UsageError("the ledger's user or password contains an @: write it as %40")  # the rest passes for the host
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise UsageError(f"ledger {without_secrets(url)} names no file, so nothing would be kept; {_FORMS}")
    if url.get_backend_name() == "sqlite" and not _IS_DECODED:
        return url.set(database=unquote(url.database or ""))
    return url


def without_secrets(url: URL) -> str:
    """The URL for display: without its password and its options, which may contain one."""
    return url.set(query={}).render_as_string(hide_password=True)


def shown_in_process_list(address: str) -> str:
    """The address of an option or a profile. Raises `UsageError` if it would show a password to others."""
    url = ledger_url(address)
    kept_elsewhere = address.partition(":")[0] in ("env", "file")
    if not kept_elsewhere and (url.password is not None or any(name.endswith("password") for name in url.query)):
        raise UsageError("the ledger's address shows its password to others: give env:NAME or file:PATH instead")
    return address
