"""# History of a Pulsar cluster

Runs whenever a snapshot has passed validation, and every night: keeps the history of the cluster's snapshots, without
Spark.

| task | what it does |
|---|---|
| `append` | folds a snapshot that triggered the run into the tables of its day |
| `seal` | at night, or by hand: folds late snapshots into earlier days; at other times, the tasks below are skipped |
| `thin` | removes what `[pulsar_advisor] retention` no longer keeps, once a past day holds it |
| `index` | writes `index.html`, the page over all clusters of the root |

It sends nothing to a cluster. Each cluster of the registry has a DAG like this one.
"""

from __future__ import annotations

from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable, chain, dag, task

from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.assets import snapshot_validated
from pulsar_advisor_airflow.clusters import Cluster, clusters_to_build, labelled
from pulsar_advisor_airflow.configuration import option
from pulsar_advisor_airflow.release import require_release
from pulsar_advisor_airflow.run_limits import unattended
from pulsar_advisor_airflow.stages import described

require_release("0.1.0", __file__)

AT_NIGHT = CronTriggerTimetable("20 0 * * *", timezone="UTC")
"""Days are in UTC. Twenty minutes after midnight, their last snapshot has been validated."""


def history_dag(cluster: Cluster) -> None:
    """Add a cluster's DAG to this file."""

    @dag(
        labelled("pulsar_history", cluster),
        schedule=AssetOrTimeSchedule(timetable=AT_NIGHT, assets=[snapshot_validated(cluster)]),
        is_paused_upon_creation=False,
        doc_md=described(__doc__, cluster),
        tags=["pulsar", "history", cluster.name],
        **unattended(),
    )
    def pulsar_history() -> None:
        """Append → seal → thin → index."""
        chain(
            task(task_id="append")(tasks.append_to_history)(cluster.name),
            task(task_id="seal")(tasks.seal_history)(cluster.name),
            task(task_id="thin")(tasks.thin_history)(cluster.name, option("retention")),
            task(task_id="index")(tasks.write_index)(),
        )

    pulsar_history()


for each in clusters_to_build("pulsar_history"):
    history_dag(each)
