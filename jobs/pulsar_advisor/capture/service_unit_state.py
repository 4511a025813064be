"""Determines a bundle's valid record, and its owner, in the Extensible manager's ownership channel.

The channel's topic is compacted with a conflict resolver, so the last record of a bundle is not always the one that
the brokers use. Source: Pulsar `ServiceUnitStateDataConflictResolver`, `ServiceUnitState`,
`ServiceUnitStateData` of `loadbalance.extensions.channel` (3.0.7 to 4.2.4).
"""

# ruff: noqa: N815 (the field names are the keys of the documents)

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from pulsar_advisor.capture.documents import AllowList, Count, Flag, Text

ABSENT: Final = "Init"
"""The state of a bundle without a record."""

_TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    ABSENT: frozenset({"Free", "Owned", "Assigning", "Releasing", "Splitting", "Deleted"}),
    "Free": frozenset({"Assigning", ABSENT}),
    "Owned": frozenset({"Splitting", "Releasing"}),
    "Assigning": frozenset({"Owned"}),
    "Releasing": frozenset({"Assigning", "Free"}),
    "Splitting": frozenset({"Deleted"}),
    "Deleted": frozenset({ABSENT}),
}
_SAME_BROKERS: Final = frozenset(
    {("Assigning", "Owned"), ("Releasing", "Free"), ("Releasing", "Assigning"), ("Splitting", "Deleted")}
)
_GREATEST_VERSION: Final = 2**63 - 1
_LEAST_VERSION: Final = -(2**63)


class ServiceUnitState(AllowList):
    """`ServiceUnitStateData`: brokers by id; `timestamp` epoch milliseconds; each change increments `versionId`."""

    state: Text = UNSET
    dstBroker: Text = UNSET
    sourceBroker: Text = UNSET
    splitServiceUnitToDestBroker: dict[str, str | None] | UnsetType | None = UNSET
    force: Flag = UNSET
    timestamp: Count = UNSET
    versionId: Count = UNSET


SERVICE_UNIT_STATE: Final = msgspec.json.Decoder(ServiceUnitState)


def prevailing(records: Iterable[tuple[str, ServiceUnitState | None]]) -> dict[str, ServiceUnitState]:
    """Bundle -> its valid record after applying `records` (bundle, record or None: removed) in order."""
    held: dict[str, ServiceUnitState] = {}
    for bundle, record in records:
        if record is None:
            held.pop(bundle, None)
        elif replaces(record, held.get(bundle)):
            held[bundle] = record
    return held


def replaces(new: ServiceUnitState, old: ServiceUnitState | None) -> bool:
    """Whether a record replaces the one held for its bundle."""
    if old is not None:
        held, offered = old.versionId or 0, new.versionId or 0
        if (held, offered) != (_GREATEST_VERSION, _LEAST_VERSION):
            if held >= offered:
                return False
            if offered > held + 1:  # records in between were compacted away
                return True
    if new.force is True:
        return True
    before, after = (old.state or ABSENT) if old is not None else ABSENT, new.state or ABSENT
    return after in _TRANSITIONS.get(before, frozenset()) and (old is None or _brokers_fit(old, new, before, after))


def _brokers_fit(old: ServiceUnitState, new: ServiceUnitState, before: str, after: str) -> bool:
    old_source, old_owner = old.sourceBroker or None, old.dstBroker or None
    source, owner = new.sourceBroker or None, new.dstBroker or None
    if before == "Owned":
        given_up = source is not None and source == old_owner
        return given_up and (owner is None if after == "Splitting" else owner != old_owner)
    if (before, after) in _SAME_BROKERS:
        return (source, owner) == (old_source, old_owner) and (after != "Assigning" or owner is not None)
    if (before, after) == ("Free", "Assigning"):
        return source is None and owner is not None
    return True
