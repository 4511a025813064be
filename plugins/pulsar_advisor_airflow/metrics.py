"""Figures of each cluster in Airflow's own metrics, which go where `[metrics]` sends them: StatsD, OpenTelemetry."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Literal

from airflow.sdk.observability import stats

from pulsar_advisor.model.cluster.snapshot_id import snapshot_moment

Figure = Literal["snapshot_age_s", "failed_checks", "imbalance_ratio"]

PREFIX: Final = "pulsar_advisor"


def measured(figure: Figure, value: float, cluster: str) -> None:
    """Set a gauge. Its name includes the cluster because StatsD drops tags unless their format is configured."""
    stats.gauge(f"{PREFIX}.{figure}.{cluster}", value, tags={"cluster": cluster})


def age_measured(snapshot: str, cluster: str) -> None:
    """Set the age of a cluster's newest snapshot with advice; 0 if the clock of the capturing machine is ahead."""
    measured("snapshot_age_s", max(0.0, (datetime.now(UTC) - snapshot_moment(snapshot)).total_seconds()), cluster)
