"""The defaults of the listed releases, and the listed release that a version is judged by.

They were read from the released `ServiceConfiguration` classes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Final, NotRequired, TypedDict

from pulsar_advisor.model.configuration.releases import line_of, release_number
from pulsar_advisor.model.errors import DataNotFit

Scalar = bool | int | float | str | list[str] | None


class _Key(TypedDict):
    """One of Pulsar's keys as a release has it."""

    default: Scalar
    type: str
    """In Java."""
    dynamic: bool
    deprecated: NotRequired[bool]


_KEYS: Final[dict[str, dict[str, _Key]]] = json.loads(
    resources.files(__package__).joinpath("defaults_by_version.json").read_text(encoding="utf-8")
)
"""By release and key."""
OLDEST: Final = min(_KEYS, key=release_number)
NEWEST: Final = max(_KEYS, key=release_number)
"""The newest release whose defaults and decisions are known."""
ALLOWED_KEYS: Final = frozenset(key for keys in _KEYS.values() for key in keys)
"""Pulsar's keys that may be stored from a broker's configuration: none of them can contain a secret."""


def storable(texts: Mapping[str, str]) -> dict[str, str]:
    """What of a configuration may be stored, sorted by key: the rest may hold any secret."""
    return {key: texts[key] for key in sorted(texts.keys() & ALLOWED_KEYS)}


def newer_than_known(pulsar_version: str) -> list[str]:
    """A sentence if the release is newer than all listed ones. Raises `DataNotFit` for a text that isn't a release."""
    if release_number(pulsar_version) <= release_number(NEWEST):
        return []
    return [
        f"Pulsar {pulsar_version} is newer than {NEWEST}, the newest release known here: it is judged by the defaults "
        f"and the decisions of {NEWEST}. Look for a newer pulsar-advisor."
    ]


def behaviour_of(pulsar_version: str | None) -> tuple[int, int, int]:
    """The release whose decisions are modelled for a version: the listed one, or a later one of its line.

    What maintenance releases changed since is known from Pulsar's release notes (docs/parity.md). Raises `DataNotFit`
    as `resolve_settings` does.
    """
    number = release_number(pulsar_version)
    if number[:2] < release_number(OLDEST)[:2]:
        raise DataNotFit(
            f"Pulsar {pulsar_version} is older than 2.11: there are tables of this cluster but no recommendations. "
            "Upgrade the cluster to get recommendations"
        )
    listed = release_number(listed_release(str(pulsar_version)))
    return max(listed, number) if number[:2] == listed[:2] else listed


def listed_release(pulsar_version: str) -> str:
    """The listed release of the nearest line at or below, the oldest if there is none or the version is unreadable."""
    try:
        line = line_of(pulsar_version)
    except DataNotFit:
        return OLDEST
    at_or_below = [one for one in _KEYS if release_number(one)[: len(line)] <= line]
    return max(at_or_below, key=release_number, default=OLDEST)


def has(release: str, key: str) -> bool:
    """Whether a listed release has one of Pulsar's keys."""
    return key in _KEYS[release]


def is_known(key: str, behaviour: tuple[int, int, int]) -> bool:
    """Whether a release that decides as `behaviour` has one of Pulsar's keys."""
    return has(max((one for one in _KEYS if release_number(one) <= behaviour), key=release_number), key)


def release_with(key: str, release: str) -> str:
    """The release itself if it has a key, else the first one that does."""
    return release if has(release, key) else min((one for one in _KEYS if has(one, key)), key=release_number)


def default_of(release: str, key: str) -> Scalar:
    """The default of a key in a listed release that has it."""
    return _KEYS[release][key]["default"]


def bits_of(key: str) -> int:
    """The width of a key with whole numbers: 32 or 64."""
    return 64 if _KEYS[release_with(key, OLDEST)][key]["type"] == "long" else 32


def is_dynamic(release: str, key: str) -> bool:
    """Whether brokers of a listed release accept a dynamic value of a key."""
    return has(release, key) and _KEYS[release][key]["dynamic"]


_READ_AT_START: Final = frozenset(
    {
        "loadBalancerLoadSheddingStrategy",
        "loadBalancerHostUsageCheckIntervalMinutes",
        "loadBalancerReportUpdateMinIntervalMillis",
    }
)
"""Brokers accept and show a dynamic value of these, but use the one that they started with. Source:
`ModularLoadManagerImpl.initialize`, `UnloadScheduler`, `LinuxBrokerHostUsageImpl`, `PulsarService` (4.0.8)."""


def takes_effect_at_once(release: str, key: str) -> bool:
    """Whether brokers of a listed release use a dynamic value of a key without a restart."""
    return is_dynamic(release, key) and key not in _READ_AT_START


def is_deprecated(release: str, key: str) -> bool:
    """Whether a listed release has one of Pulsar's keys only for the sake of old configurations."""
    return has(release, key) and _KEYS[release][key].get("deprecated", False)
