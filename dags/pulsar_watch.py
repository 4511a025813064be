"""# Watch that snapshots come

Runs every five minutes, for all clusters, and reads only files.

| task | what it does |
|---|---|
| `overdue` | sets the metric of each cluster's newest validated snapshot; calls somebody, once, if three are missing |

On a schedule of every 15 minutes that is after 45 minutes without one. A cluster without a schedule is never overdue.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag, task

from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.failures import RETRIES
from pulsar_advisor_airflow.notifiers import Call
from pulsar_advisor_airflow.release import require_release
from pulsar_advisor_airflow.run_limits import NO_BACKFILL, SOON

require_release("0.1.0", __file__)


@dag(
    schedule="*/5 * * * *",
    catchup=False,
    max_active_runs=1,
    doc_md=__doc__,
    tags=["pulsar", "maintenance"],
    allowed_run_types=NO_BACKFILL,
    dagrun_timeout=timedelta(minutes=30),
    default_args={"owner": "pulsar-advisor", "on_failure_callback": [Call("task.failed")], **SOON, **RETRIES},
    render_template_as_native_obj=True,
)
def pulsar_watch() -> None:
    """One task: it must come through when the workers are busy."""
    known = "{{ ti.xcom_pull(task_ids='overdue', include_prior_dates=True) or [] }}"
    task(task_id="overdue")(tasks.overdue_clusters)(known=known)


pulsar_watch()
