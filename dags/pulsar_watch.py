"""# Watch that snapshots come

Runs every five minutes, for all clusters, and reads only files and the ledger.

| task | what it does |
|---|---|
| `overdue` | sets the metric of each cluster's newest snapshot with advice; calls everyone once if three are missing |
|  | or they can't be read, once when they come again, and once about a run that its process abandoned |

With a schedule of every 15 minutes, that is after 45 minutes. A cluster without a schedule is never overdue. The state
store of a cluster's asset keeps the newest snapshot that people were called about.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Asset, dag, task

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.assets import snapshot_validated
from pulsar_advisor_airflow.clusters import clusters
from pulsar_advisor_airflow.release import require_release
from pulsar_advisor_airflow.run_limits import SOON, unattended

require_release("0.1.0", __file__)


def validated() -> list[Asset]:
    """The assets of all clusters; none while the registry is invalid, so that the task fails and calls somebody."""
    try:
        return [snapshot_validated(each) for each in clusters().values()]
    except UsageError:
        return []


@dag(
    schedule="*/5 * * * *",
    doc_md=__doc__,
    tags=["pulsar", "maintenance"],
    **unattended(timedelta(minutes=30), **SOON),
)
def pulsar_watch() -> None:
    """A single task, so that it gets through when the workers are busy."""
    task(task_id="overdue", inlets=validated())(tasks.overdue_clusters)()


pulsar_watch()
