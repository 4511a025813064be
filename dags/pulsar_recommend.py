"""# Recommendation for a Pulsar cluster

Runs whenever a snapshot has passed validation: computes what each of Pulsar's strategies would do, compares the
outcomes and writes the report. It writes nothing to the cluster.

| task | what it does |
|---|---|
| `snapshot` | takes the snapshot's id from the asset event, or from the form of a manual run |
| `require_trusted_snapshot` | fails, without a retry, if that snapshot must not be used |
| `recommend` | writes a plan for each combination of strategies (Spark) |
| `report` | writes the HTML report; returns its location |

To carry a plan out, trigger `pulsar_rebalance` with its digest.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Param, chain, dag, task

from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.assets import SNAPSHOT_VALIDATED
from pulsar_advisor_airflow.forms import ALL, STRATEGY_ARGUMENTS, strategy_params
from pulsar_advisor_airflow.stages import spark_stage


@dag(
    schedule=[SNAPSHOT_VALIDATED],
    max_active_runs=1,
    is_paused_upon_creation=False,
    doc_md=__doc__,
    tags=["pulsar", "recommendation"],
    default_args={"owner": "pulsar-advisor", "retries": 2, "retry_delay": timedelta(minutes=1)},
    params={
        "snapshot": Param(
            None,
            type=["null", "string"],
            pattern=r"^\d{8}T\d{6}Z$",
            title="Snapshot",
            description="For a manual run: the id of a snapshot, 20261121T083000Z",
        ),
        **strategy_params(ALL, ALL),
    },
)
def pulsar_recommend() -> None:
    """Recommend → report."""
    named = task(task_id="snapshot")(tasks.snapshot_to_recommend_on)()
    snapshot = task(tasks.require_trusted_snapshot)(named)
    chain(spark_stage("recommend", snapshot, STRATEGY_ARGUMENTS), task(tasks.report)(snapshot))


pulsar_recommend()
