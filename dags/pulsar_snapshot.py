"""# Snapshot of a Pulsar cluster

Captures the cluster without changing it, converts the data into tables, and judges whether it can be trusted.

| task | what it does |
|---|---|
| `capture` | reads the admin API and ZooKeeper into a raw snapshot; returns its id |
| `normalize` | converts it into Parquet tables (Spark) |
| `validate` | runs the expectation suites on them (Spark) |
| `snapshot` | in place of these two, if `[pulsar_advisor] one_spark_task` is set: both in one Spark application |
| `require_trusted_snapshot` | fails, without a retry, if the snapshot must not be used |

A snapshot that passes triggers an event of the asset `pulsar-snapshot-validated`. A failed `require_trusted_snapshot`
is a verdict on the data: `validation/…/result.json` says which check failed and what to do.

Each cluster of the registry has a DAG like this one, with its own schedule (in UTC), history and asset.
"""

from __future__ import annotations

from airflow.sdk import CronTriggerTimetable, dag

from pulsar_advisor_airflow.assets import snapshot_validated
from pulsar_advisor_airflow.clusters import Cluster, clusters_to_build, labelled
from pulsar_advisor_airflow.release import require_release
from pulsar_advisor_airflow.run_limits import unattended
from pulsar_advisor_airflow.stages import described, place_of, trusted_snapshot

require_release("0.1.0", __file__)


def snapshot_dag(cluster: Cluster) -> None:
    """Add a cluster's DAG to this file."""

    @dag(
        labelled("pulsar_snapshot", cluster),
        schedule=cluster.schedule and CronTriggerTimetable(cluster.schedule, timezone="UTC"),
        doc_md=described(__doc__, cluster),
        tags=["pulsar", "snapshot", cluster.name],
        **unattended(),
    )
    def pulsar_snapshot() -> None:
        """Capture → normalize → validate."""
        trusted_snapshot(place_of(cluster), outlets=[snapshot_validated(cluster)])

    pulsar_snapshot()


for each in clusters_to_build("pulsar_snapshot"):
    snapshot_dag(each)
