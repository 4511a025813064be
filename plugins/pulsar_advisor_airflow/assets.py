"""The one asset: a snapshot that was captured, made into tables, and may be used."""

from __future__ import annotations

from airflow.sdk import Asset

SNAPSHOT_VALIDATED = Asset("pulsar-snapshot-validated")
"""Each event's extra is `{"root", "cluster", "snapshot"}`: where to look, never the data."""
