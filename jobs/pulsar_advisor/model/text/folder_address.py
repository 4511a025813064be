"""The address of a folder, which messages, logs and reports show: none may hold a password."""

from __future__ import annotations

import re
from typing import Final

from pulsar_advisor.model.errors import UsageError

_PASSWORD: Final = re.compile(r"://[^/]*:[^/]*@")


def require_no_password(url: str) -> None:
    """Raise `UsageError`, which doesn't repeat it, for a URL that holds a password."""
    if _PASSWORD.search(url):
        raise UsageError(
            f"the address of a root or folder holds a password: {url.partition(':')[0]}://…; leave it out, and have "
            "the storage's own package find it, in its variables or files"
        )
