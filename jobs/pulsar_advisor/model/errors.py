"""The one error hierarchy: every failure a user can meet, each with the exit code of the shell contract.

A message says what was wrong, with which value, and what to do next. Exit codes: 1 unexpected failure, 2 usage,
3 data not fit for use, 4 refused, 5 applied in part or deviates, 8 the cluster's own balancer is still off.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from pulsar_advisor.model.text.plain_text import plain


class AdvisorError(Exception):
    """A failure explained to the user in one line. Subclasses differ in what the user can do about it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "") -> None:
        # Names in it come from clusters and files. A stack trace shows it too, as in Airflow's log.
        super().__init__(plain(message))


class UsageError(AdvisorError):
    """An invalid call: unknown name, unknown setting, unusable option or path."""

    exit_code = 2


class ClusterUnreachable(AdvisorError):
    """The cluster (or a required broker) can't be reached, or refuses access."""


class StorageError(AdvisorError):
    """The root can't be read or written, or its content isn't what it claims to be."""


class JavaEnded(AdvisorError):
    """The Java that this process had started for Spark ended by itself."""


class DataNotFit(AdvisorError):
    """The data exist but must not be used: incomplete, contradictory, stale, or not validated."""

    exit_code = 3


class Refused(AdvisorError):
    """A safety rule forbids the action: not approved, wrong digest, stale, drifted, foreign cluster."""

    exit_code = 4


class Deviates(AdvisorError):
    """Carried out in part, or the cluster does not look as predicted."""

    exit_code = 5


class BalancerStillOff(AdvisorError):
    """A run switched off the cluster's own balancer and ended, in whatever way, without switching it on again."""

    exit_code = 8


@contextmanager
def attempting(what: str, otherwise: str = "") -> Iterator[None]:
    """An `OSError` in the block becomes a `StorageError`: what was attempted (`read /a/b`), why not, what to do."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"can't {what}: {refusal(error)}{otherwise and f': {otherwise}'}") from error


def refusal(error: OSError) -> str:
    """Why the system refused something; if it keeps another user's file or folder from this one, also whose that is."""
    words = error.strerror or str(error)
    if isinstance(error, PermissionError) and isinstance(error.filename, str):
        path = Path(error.filename)
        for place in (path, *path.parents):  # a file that isn't there, or can't be seen, is its folder's matter
            with suppress(OSError):
                owner, user = place.stat().st_uid, os.geteuid()
                if owner == user:  # its mode, the folder above or the system may be why
                    break
                whose = f"{place} belongs to {_name(owner)}, this process to {_name(user)}"
                return f"{words}: {whose}: change either, or the mode"
    return words


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"uid {user}"
