"""What changed in a cluster between two snapshots, apart from its load."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from pulsar_advisor.model.cluster.cluster_state import ClusterState
from pulsar_advisor.model.cluster.namespaces import is_pulsars_own
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.planning.plans.steps import boundaries_of

NAMES_SHOWN: Final = 10


def drift(
    before: ClusterState,
    now: ClusterState,
    settings_before: Mapping[str, str] | None,
    settings_now: Mapping[str, str] | None,
) -> tuple[str, ...]:
    """One sentence per change, brokers first; empty if nothing changed.

    The settings are Pulsar's keys with their texts, dynamic values over the leader's runtime ones; None if no broker's
    settings were read.
    """
    return (
        *_came_and_went("Broker", _active(before), _active(now), "was added", "was lost"),
        *_brokers_versions(before, now),
        *_leader(before, now),
        *_unread(before, settings_before),
        *_unread(now, settings_now),
        *_settings(settings_before, settings_now),
        *_came_and_went("Namespace", _namespaces(before), _namespaces(now), "was created", "was deleted"),
        *_boundaries(before, now),
    )


def _active(state: ClusterState) -> set[str]:
    return {broker for broker, active in zip(state.brokers.ids, state.brokers.available, strict=True) if active}


def _namespaces(state: ClusterState) -> dict[str, int]:
    """Name -> row, without the brokers' own namespaces, which come and go with them."""
    return {name: row for row, name in enumerate(state.namespaces.names) if not is_pulsars_own(name)}


def _came_and_went(kind: str, before: Collection[str], now: Collection[str], came: str, went: str) -> Iterator[str]:
    for names, what in ((set(now) - set(before), came), (set(before) - set(now), went)):
        yield from _shortened([f"{kind} {name} {what}." for name in sorted(names)])


def _brokers_versions(before: ClusterState, now: ClusterState) -> Iterator[str]:
    old = dict(zip(before.brokers.ids, before.brokers.versions, strict=True))
    new = dict(zip(now.brokers.ids, now.brokers.versions, strict=True))
    yield from _shortened(
        [
            f"Broker {broker} changed from version {old[broker]} to {version}."
            for broker, version in new.items()
            if version and old.get(broker) and version != old[broker]
        ]
    )


def _leader(before: ClusterState, now: ClusterState) -> Iterator[str]:
    if before.load_manager != now.load_manager:
        yield f"The load manager changed from {before.load_manager} to {now.load_manager}."
    old, new = (state.brokers.ids[state.leader] if state.leader >= 0 else "not known" for state in (before, now))
    if old != new:
        yield f"The leader was {old}, it is {new}: its memory of usage and unloads is lost."


def _settings(before: Mapping[str, str] | None, now: Mapping[str, str] | None) -> Iterator[str]:
    if before is None or now is None:
        return
    yield from _shortened(
        [
            f"{key} changed from '{before.get(key, 'not set')}' to '{now.get(key, 'not set')}'."
            for key in sorted({*before, *now})
            if before.get(key) != now.get(key)
        ]
    )


def _unread(state: ClusterState, settings: Mapping[str, str] | None) -> Iterator[str]:
    if settings is None:
        yield f"Snapshot {state.snapshot} has no broker settings: changes can't be detected."


def _boundaries(before: ClusterState, now: ClusterState) -> Iterator[str]:
    old, new = _namespaces(before), _namespaces(now)
    changes = []
    for name in sorted(old.keys() & new.keys()):
        cuts_before, cuts_now = boundaries_of(before, old[name]), boundaries_of(now, new[name])
        if cuts_before != cuts_now:
            changes.append(
                f"The boundaries of {name} changed: {count(max(len(cuts_before) - 1, 0), 'bundle')} before, "
                f"{max(len(cuts_now) - 1, 0):,} now."
            )
    yield from _shortened(changes)


def _shortened(sentences: list[str]) -> Iterator[str]:
    yield from sentences[:NAMES_SHOWN]
    if len(sentences) > NAMES_SHOWN:
        yield f"And {len(sentences) - NAMES_SHOWN} more changes like the last one."
