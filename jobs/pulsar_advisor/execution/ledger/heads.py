"""Heads of a ledger, kept where its owner can't reach: they show what the ledger alone can't.

Whoever owns the database can wipe it, put an older copy back, or write a whole new chain. Each head that was kept is
then an event that the ledger doesn't have, or has with another hash.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from upath import UPath

from pulsar_advisor.admin.webhook import Webhook
from pulsar_advisor.documents.ledger_head import LedgerHead
from pulsar_advisor.execution.ledger.chain import ChainHead
from pulsar_advisor.model.errors import AdvisorError, StorageError, UsageError
from pulsar_advisor.model.text.folder_address import require_no_password
from pulsar_advisor.storage.files import write_file

LOG: Final = "log"
WEBHOOK: Final = "webhook"
KIND: Final = "ledger.head"
"""Of the message to a webhook."""

_FILE: Final = re.compile(r"head-(\d{12})-([0-9a-f]{64})\.json")
_ADDRESS: Final = ("https://", "http://", "env:", "file:")
"""How the address of a webhook begins, or where it is kept; a folder is named by its path or URL."""

_LOCAL: Final = "file://"

Keeper = UPath | Webhook | logging.Logger
"""A folder, in which each head is a file of its own that is never written again; a webhook; a log."""


def keepers_of(text: str, webhook: Webhook | None = None) -> tuple[Keeper, ...]:
    """The places in a text, separated by commas: a folder, `log`, the address of a webhook, or `webhook`, as given.

    Raises `UsageError` for an address that is none.
    """
    return tuple(_keeper_of(place.strip(), webhook) for place in text.split(",") if place.strip())


def _keeper_of(place: str, webhook: Webhook | None) -> Keeper:
    if place == LOG:
        return logging.getLogger(__name__)
    if place == WEBHOOK and webhook is None:
        raise UsageError("heads of the ledger are to go to the webhook, and none is configured")
    if place == WEBHOOK and webhook is not None:
        return webhook
    if place.lower().startswith(_ADDRESS) and not place.startswith(_LOCAL):
        return Webhook(place)
    require_no_password(place)
    try:
        return UPath(place.removeprefix(_LOCAL))
    except (ImportError, ValueError) as error:
        raise UsageError(f"'{place}' can't keep heads of the ledger: {error}") from error


def keep(head: ChainHead, keepers: Sequence[Keeper]) -> list[str]:
    """Hand a head to every keeper; returns why some don't have it now. The head of an empty ledger says nothing."""
    return list(_failures(head, keepers)) if head.event else []


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
        # Never written again: where a retention lock holds objects, that would fail.
        file = keeper / f"head-{head.event:012d}-{head.chain}.json"
        try:
            is_kept = file.exists()
        except OSError as error:
            raise StorageError(f"can't look into {keeper}: {error.strerror or error}") from error
        if not is_kept:
            kept_at = datetime.now(UTC).isoformat(timespec="seconds")
            write_file(file, LedgerHead(head=str(head), kept_at=kept_at).content())
    else:
        keeper.warning("head of the ledger: %s", head)  # at this level no usual configuration leaves it out
