"""Reads the table of settings: the inputs of `resolve_settings`, and each broker's own configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import Snapshot
from pulsar_advisor.tables.read_table import read_table

SettingsInputs = tuple[str | None, Mapping[str, str], Mapping[str, str]]


def settings_inputs(snapshot: Snapshot) -> SettingsInputs:
    """The leader's release and runtime configuration, and the dynamic values: the inputs of `resolve_settings`.

    During a rolling upgrade the leader decides by its own release. If that is unknown, the oldest one replaces it; if
    its configuration is missing, that of the first broker that has one does. Raises `StorageError` if the table of
    settings can't be read.
    """
    manifest = read_manifest(snapshot)
    release = manifest.pulsar_versions.get(manifest.leader or "", manifest.pulsar_version)
    return _inputs(snapshot, release, manifest.leader, lambda _broker: True)


def settings_inputs_of_oldest(snapshot: Snapshot) -> SettingsInputs:
    """The same for the oldest release, with the configuration of a broker that runs it: of the leader, if it does.

    Without such a configuration there are no runtime values. Raises as `settings_inputs`.
    """
    manifest = read_manifest(snapshot)
    oldest, releases = manifest.pulsar_version, manifest.pulsar_versions
    return _inputs(snapshot, oldest, manifest.leader, lambda broker: releases.get(broker, oldest) == oldest)


def _inputs(
    snapshot: Snapshot, release: str | None, leader: str | None, counts: Callable[[str], bool]
) -> SettingsInputs:
    rows = read_table(snapshot, "settings").sort_by([(key, "ascending") for key in ("origin", "broker", "key")])
    runtime = rows.filter(pc.field("origin") == "runtime")
    holders = [broker for broker in runtime["broker"].unique().to_pylist() if counts(broker)]
    holder = leader if leader in holders else next(iter(holders), None)
    return (
        release,
        _mapping(runtime.filter(pc.field("broker") == holder)) if holder else {},
        _mapping(rows.filter(pc.field("origin") == "dynamic")),
    )


def runtime_settings(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """Broker -> its runtime configuration, for the brokers that have one in the table of settings."""
    rows = read_table(snapshot, "settings").filter(pc.field("origin") == "runtime")
    return {
        broker: _mapping(rows.filter(pc.field("broker") == broker))
        for broker in sorted(rows["broker"].unique().to_pylist())
    }


def _mapping(rows: pa.Table) -> dict[str, str]:
    return dict(zip(rows["key"].to_pylist(), pc.fill_null(rows["value"], "").to_pylist(), strict=True))
