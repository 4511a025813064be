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
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag

from pulsar_advisor_airflow.assets import SNAPSHOT_VALIDATED
from pulsar_advisor_airflow.configuration import option
from pulsar_advisor_airflow.stages import trusted_snapshot


@dag(
    schedule=option("snapshot_schedule"),
    catchup=False,
    max_active_runs=1,
    doc_md=__doc__,
    tags=["pulsar", "snapshot"],
    default_args={"owner": "pulsar-advisor", "retries": 2, "retry_delay": timedelta(minutes=1)},
)
def pulsar_snapshot() -> None:
    """Capture → normalize → validate."""
    trusted_snapshot(outlets=[SNAPSHOT_VALIDATED])


pulsar_snapshot()
