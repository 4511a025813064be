"""Ledger heads, kept out of the reach of the ledger's owner: they reveal what the ledger alone can't.

Whoever owns the database can wipe it, put an older copy back, or write a whole new chain. A kept head then names an
event that the ledger lacks, or has with another hash.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from upath import UPath

from pulsar_advisor.admin.home import with_home
from pulsar_advisor.admin.webhook import Webhook
from pulsar_advisor.documents.ledger_head import LedgerHead
from pulsar_advisor.execution.ledger.chain import ChainHead
from pulsar_advisor.model.errors import AdvisorError, StorageError, UsageError
from pulsar_advisor.model.text.folder_address import require_absolute, require_no_password
from pulsar_advisor.storage.files import write_file

LOG: Final = "log"
WEBHOOK: Final = "webhook"
KIND: Final = "ledger.head"
"""The kind of the message to a webhook."""

_FILE: Final = re.compile(r"head-(\d{12})-([0-9a-f]{64})\.json")
_ADDRESS: Final = ("https://", "http://", "env:", "file:")
"""Prefixes of a webhook's address, or of a reference to one; any other place is the path or URL of a folder."""

_LOCAL: Final = "file://"

Keeper = UPath | Webhook | logging.Logger
"""A folder, with one write-once file per head; a webhook; a log."""


def keepers_of(text: str, webhook: Webhook | None = None) -> tuple[Keeper, ...]:
    """The keepers in a comma-separated text: a folder, `log`, a webhook's address, or `webhook` for the given one.

    Raises `UsageError` for an invalid address.
    """
    return tuple(_keeper_of(place.strip(), webhook) for place in text.split(",") if place.strip())


def _keeper_of(place: str, webhook: Webhook | None) -> Keeper:
    if place == LOG:
        return logging.getLogger(__name__)
    if place == WEBHOOK and webhook is None:
        raise UsageError("ledger heads can't go to the webhook: none is configured")
    if place == WEBHOOK and webhook is not None:
        return webhook
    if place.lower().startswith(_ADDRESS) and not place.startswith(_LOCAL):
        return Webhook(place)
    require_no_password(place)
    require_absolute(place)
    try:
        folder = UPath(with_home(place.removeprefix(_LOCAL)))
        folder.fs  # noqa: B018 - a path opens its store late, whose package may be missing
    except (ImportError, ValueError) as error:
        raise UsageError(f"'{place}' can't keep heads of the ledger: {error}") from error
    return folder


def keep(head: ChainHead, keepers: Sequence[Keeper]) -> list[str]:
    """Hand a head to every keeper; returns why any of them failed. The head of an empty ledger isn't kept."""
    return list(_failures(head, keepers)) if head.event else []


def absent(keepers: Sequence[Keeper]) -> list[UPath]:
    """The folders among the keepers that don't exist: wrong addresses, or no head was kept yet."""
    return [folder for folder in keepers if isinstance(folder, UPath) and not folder.exists()]


def kept(keepers: Sequence[Keeper]) -> list[ChainHead]:
    """The heads in the folders among the keepers, oldest first. Raises `StorageError` if one can't be listed."""
    names: set[str] = set()
    for folder in keepers:
        if isinstance(folder, UPath):
            try:
                names |= {file.name for file in folder.iterdir()} if folder.exists() else set()
            except OSError as error:
                raise StorageError(f"can't list the kept heads in {folder}: {error.strerror or error}") from error
    found = (match for name in names if (match := _FILE.fullmatch(name)))
    return sorted((ChainHead(int(one[1]), one[2]) for one in found), key=lambda head: head.event)


def _failures(head: ChainHead, keepers: Sequence[Keeper]) -> Iterator[str]:
    for keeper in keepers:
        try:
            _hand_over(head, keeper)
        except AdvisorError as error:
            yield f"the ledger's head {head} was not kept: {error}"


def _hand_over(head: ChainHead, keeper: Keeper) -> None:
    if isinstance(keeper, Webhook):
        keeper.send(KIND, {"head": str(head)})
    elif isinstance(keeper, UPath):
        # Writing it again would fail on an object store with a retention lock.
        file = keeper / f"head-{head.event:012d}-{head.chain}.json"
        try:
            is_kept = file.exists()
        except OSError as error:
            raise StorageError(f"can't look for {file}: {error.strerror or error}") from error
        if not is_kept:
            kept_at = datetime.now(UTC).isoformat(timespec="seconds")
            write_file(file, LedgerHead(head=str(head), kept_at=kept_at).content())
    else:
        keeper.warning("head of the ledger: %s", head)  # a level that no usual configuration filters out
