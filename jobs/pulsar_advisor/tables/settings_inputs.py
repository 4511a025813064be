"""Reads the table of settings: the inputs of `resolve_settings`, and each broker's own configuration."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_advisor.storage.results import read_manifest
from pulsar_advisor.storage.root import Root
from pulsar_advisor.tables.read_table import read_table

SettingsInputs = tuple[str | None, Mapping[str, str], Mapping[str, str]]


def settings_inputs(root: Root, snapshot: str) -> SettingsInputs:
    """Pulsar's version, the leader's runtime configuration, and the dynamic values: the inputs of `resolve_settings`.

    If the leader's configuration is missing, that of the first broker that has one replaces it. Raises `StorageError`
    if the table of settings can't be read.
    """
    manifest = read_manifest(root, snapshot)
    rows = read_table(root, snapshot, "settings").sort_by([(key, "ascending") for key in ("origin", "broker", "key")])
    runtime = rows.filter(pc.field("origin") == "runtime")
    holders = runtime["broker"].unique().to_pylist()
    holder = manifest.leader if manifest.leader in holders else next(iter(holders), None)
    return (
        manifest.pulsar_version,
        _mapping(runtime.filter(pc.field("broker") == holder)) if holder else {},
        _mapping(rows.filter(pc.field("origin") == "dynamic")),
    )


def runtime_settings(root: Root, snapshot: str) -> dict[str, dict[str, str]]:
    """Broker -> its runtime configuration, for the brokers that have one in the table of settings."""
    rows = read_table(root, snapshot, "settings").filter(pc.field("origin") == "runtime")
    return {
        broker: _mapping(rows.filter(pc.field("broker") == broker))
        for broker in sorted(rows["broker"].unique().to_pylist())
    }


def _mapping(rows: pa.Table) -> dict[str, str]:
    return dict(zip(rows["key"].to_pylist(), pc.fill_null(rows["value"], "").to_pylist(), strict=True))
