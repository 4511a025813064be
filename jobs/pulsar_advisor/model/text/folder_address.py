"""The address of a folder: it means the same in every process, and has no password, as messages and reports show it."""

from __future__ import annotations

import os
import re
from typing import Final

from pulsar_advisor.model.errors import UsageError

_PASSWORD: Final = re.compile(r"://[^/\[]*:(?!\d{1,5}/)[^@]*@")
"""Keys of object stores contain slashes; a port, or an IPv6 address, may come before a path that contains an @."""
_RELATIVE_FILE: Final = re.compile(r"file:(?!///|/(?!/))")
"""A URL of a file without an absolute path: the part after two slashes is a host, not a folder."""


def require_no_password(url: str) -> None:
    """Raise `UsageError` for a URL that holds a password, without repeating it."""
    if _PASSWORD.search(url):
        raise UsageError(
            f"the address of a root or folder holds a password: {url.partition(':')[0]}://…; leave it out, and have "
            "the storage's own package find it, in its variables or files"
        )


def require_text(url: str) -> None:
    """Raise `UsageError` for a name that isn't UTF-8 on disk: Python would find the folder, Spark and reports not."""
    try:
        is_utf8 = os.fsencode(url) == url.encode()
    except UnicodeEncodeError:
        is_utf8 = False
    if not is_utf8:
        raise UsageError(
            f"the name of the root or folder '{url}' is not UTF-8: rename it, or, in a locale of another encoding, set "
            "LC_ALL=C.UTF-8"
        )


def require_absolute(url: str) -> None:
    """Raise `UsageError` for a file's URL that would be looked up in the working folder."""
    if _RELATIVE_FILE.match(url):
        raise UsageError(f"'{url}' is not an absolute path: give file:///PATH, or the path alone")
