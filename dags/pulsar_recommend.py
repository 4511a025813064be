"""# Recommendation for a Pulsar cluster

Runs whenever a snapshot has passed validation: computes what each of Pulsar's strategies would do, compares the
outcomes and writes the report. It writes nothing to the cluster.

| task | what it does |
|---|---|
| `snapshot` | takes the snapshot's id from the asset event, or from the form of a manual run |
| `require_trusted_snapshot` | fails, without a retry, if that snapshot must not be used |
| `recommend` | writes a plan for each combination of strategies (Spark) |
| `upgrade` | if the form names a release: what an upgrade to it does to the balancer, for the report |
| `report` | writes the HTML report; returns its location |
| `new_advice` | skipped if the last message said the same; otherwise the configured notifiers send one |

To carry a plan out, trigger `pulsar_rebalance` with its digest. Each cluster of the registry has a DAG like this one.
"""

from __future__ import annotations

from airflow.sdk import Param, chain, dag, task

from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.assets import recommended, snapshot_validated
from pulsar_advisor_airflow.clusters import Cluster, clusters_to_build, labelled
from pulsar_advisor_airflow.forms import FORM_MACROS, STRATEGY_ARGUMENTS, strategy_params
from pulsar_advisor_airflow.notifiers import TellAdvice
from pulsar_advisor_airflow.release import require_release
from pulsar_advisor_airflow.run_limits import unattended
from pulsar_advisor_airflow.stages import described, place_of, spark_stage

require_release("0.1.0", __file__)

SNAPSHOT = Param(
    None,
    type=["null", "string"],
    pattern=r"^\d{8}T\d{6}Z$",
    title="Snapshot",
    description="For a manual run: the id of a snapshot, 20261121T083000Z",
)


UPGRADE_TO = Param(
    None,
    type=["null", "string"],
    pattern=r"^\d+\.\d+\.\d+(-\S+)?$",
    title="Preview an upgrade of Pulsar to",
    description="A release, such as 5.0.1: the report says what becomes of the balancer. Empty: no preview",
)


def recommend_dag(cluster: Cluster) -> None:
    """Add a cluster's DAG to this file."""

    @dag(
        labelled("pulsar_recommend", cluster),
        schedule=[snapshot_validated(cluster)],
        render_template_as_native_obj=True,
        user_defined_macros=FORM_MACROS,
        is_paused_upon_creation=False,
        doc_md=described(__doc__, cluster),
        tags=["pulsar", "recommendation", cluster.name],
        **unattended(),
    )
    def pulsar_recommend() -> None:
        """Recommend → preview of an upgrade → report."""
        place = place_of(cluster)
        named = task(task_id="snapshot")(tasks.snapshot_to_recommend_on)()
        snapshot = task(tasks.require_trusted_snapshot)(place.cluster, named)
        plans = spark_stage("recommend", place, snapshot, STRATEGY_ARGUMENTS)
        told = {"inlets": [recommended(cluster)], "on_success_callback": TellAdvice()}
        changed = task(multiple_outputs=False, **told)(tasks.new_advice)
        previewed = task(tasks.upgrade)(place.cluster, snapshot, "{{ params.upgrade_to }}")
        reported = task(outlets=[recommended(cluster)])(tasks.report)(place.cluster, snapshot)
        chain(plans, previewed, reported, changed(place.cluster, snapshot))

    # Set last: Airflow copies the form to every later task, and checks each copy whenever it reads this file.
    pulsar_recommend().params = {
        "snapshot": SNAPSHOT,
        "upgrade_to": UPGRADE_TO,
        **strategy_params(cluster.shedder, cluster.placement),
    }


for each in clusters_to_build("pulsar_recommend"):
    recommend_dag(each)
