"""The only asset: a snapshot that was captured, converted into tables, and passed validation."""

from __future__ import annotations

from airflow.sdk import Asset

SNAPSHOT_VALIDATED = Asset("pulsar-snapshot-validated")
"""Each event's extra is `{"root", "cluster", "snapshot"}`: the location, never the data."""
