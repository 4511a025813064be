"""One value of a document, changed."""

from __future__ import annotations

from functools import reduce
from operator import getitem
from typing import Any, Final

ABSENT: Final = object()


def set_value(document: Any, where: str, becomes: Any) -> None:
    """Change what is at these keys to `becomes`, or to what it makes of the old value; ABSENT leaves it out."""
    *path, last = where.split(".")
    place = reduce(getitem, path, document)
    if becomes is ABSENT:
        del place[last]
    else:
        place[last] = becomes(place[last]) if callable(becomes) else becomes
