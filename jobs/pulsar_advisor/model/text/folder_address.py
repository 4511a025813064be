"""The address of a folder. Messages, logs and reports show it, so it must not hold a password."""

from __future__ import annotations

import re
from typing import Final

from pulsar_advisor.model.errors import UsageError

_PASSWORD: Final = re.compile(r"://[^/\[]*:(?!\d{1,5}/)[^@]*@")
"""Keys of object stores contain slashes; a port, or an IPv6 address, may come before a path that contains an @."""


def require_no_password(url: str) -> None:
    """Raise `UsageError` for a URL that holds a password, without repeating it."""
    if _PASSWORD.search(url):
        raise UsageError(
            f"the address of a root or folder holds a password: {url.partition(':')[0]}://…; leave it out, and have "
            "the storage's own package find it, in its variables or files"
        )
