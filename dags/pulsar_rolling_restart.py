"""# Restart the brokers of a Pulsar cluster one after the other, each empty when it stops

Runs only when triggered manually. Leave the form as it is to restart every broker, in the order that moves each bundle
least often, the leader last. **Nothing here restarts a broker**: it is drained, then whoever restarts it says so.

| task | what it does |
|---|---|
| `plan_by_digest` | finds the roll with the digest |
| `fresh` | or makes one from a fresh snapshot |
| `propose` | records the proposal in the ledger under the name of the user who triggered the run |
| `approve` | shows order, pace, limits and what stops it: one approval for the whole roll (*Required Actions*) |
| `roll` | drains a broker and is deferred until somebody restarted it; then the next, each on fresh figures |
| `all_restarted` | fails the DAG run if `roll` failed or was never approved |
| `restore_guard` | however `roll` ended: switches the cluster's own balancer on again, if it is still off |

The button *Roll* of the task `roll` leads to its page: where it is, what is left, *Pause*, *End*, and the button for
whoever has restarted a broker. The roll goes on once that broker runs as another process, is healthy and listed, and
the leader knows its report and where its bundles went. A failed `roll` can be cleared: it goes on where it is. One roll
of a cluster runs at a time; another one waits for its end.
"""

from __future__ import annotations

from airflow.sdk import TaskGroup, chain, dag, get_current_context, task

from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.clusters import Cluster, clusters_to_build, labelled
from pulsar_advisor_airflow.configuration import guard_notifiers
from pulsar_advisor_airflow.forms import DIGEST, FORM_MACROS, ROLL, ROLL_ARGUMENTS, THROTTLE, filled_in
from pulsar_advisor_airflow.notifiers import Call
from pulsar_advisor_airflow.operators.approval import PlanApprovalOperator
from pulsar_advisor_airflow.operators.roll import PulsarRollOperator
from pulsar_advisor_airflow.release import require_release
from pulsar_advisor_airflow.run_limits import on_request
from pulsar_advisor_airflow.stages import described, place_of, spark_stage, trusted_snapshot

require_release("0.1.0", __file__)


@task.branch
def given_or_fresh() -> str:
    """The branch that provides the plan. Fails if the form contradicts itself."""
    params = filled_in(ROLL, get_current_context())
    return "plan_by_digest" if params["digest"] else "fresh.capture"


def rolling_restart_dag(cluster: Cluster) -> None:
    """Add a cluster's DAG to this file."""

    @dag(
        labelled("pulsar_rolling_restart", cluster),
        schedule=None,
        user_defined_macros=FORM_MACROS,
        doc_md=described(__doc__, cluster),
        tags=["pulsar", "writes-to-cluster", cluster.name],
        **on_request(max_active_runs=1),
    )
    def pulsar_rolling_restart() -> None:
        """Plan → propose → approve → drain, wait for a restart, and again."""
        place = place_of(cluster)
        given = task(multiple_outputs=False)(tasks.plan_by_digest)(place.cluster, DIGEST, roll=True)
        with TaskGroup("fresh") as fresh:
            snapshot = trusted_snapshot(place)
            made = task(task_id="plan", multiple_outputs=False)(tasks.advised_plan)(place.cluster, snapshot, roll=True)
            planned = spark_stage("roll", place, snapshot, ROLL_ARGUMENTS)
            chain(snapshot, planned, task(tasks.report)(place.cluster, snapshot), made)
        chain(given_or_fresh(), [given, fresh])

        proposed = task(trigger_rule="none_failed_min_one_success", multiple_outputs=False)(tasks.propose)
        plan = proposed(place.cluster, given, made)
        gate = PlanApprovalOperator(
            task_id="approve",
            plan=plan,
            root=place.root,
            cluster=place.cluster,
            answer_within_h="{{ params.answer_within_h }}",
            valid_for_h="{{ params.expires_h }}",
            throttle={**THROTTLE, "guard": True},
            approvers="{{ params.approvers }}",
            fail_on_reject=True,
        )
        roll = PulsarRollOperator(
            task_id="roll",
            plan=plan,
            root=place.root,
            cluster=place.cluster,
            pulsar_conn_id=place.pulsar_conn_id,
            zookeeper_conn_id=place.zookeeper_conn_id,
        )
        restore = task(on_failure_callback=[*guard_notifiers(), Call("task.failed")])(tasks.restore_guard)
        chain(gate, roll, restore(place.cluster, plan).as_teardown(on_failure_fail_dagrun=True))
        # A DAG run's state is that of its last tasks: without this one a failed roll would end as a success.
        all_restarted = task(task_id="all_restarted", on_failure_callback=[])(tasks.require_success)
        chain([gate, roll], all_restarted().as_teardown(on_failure_fail_dagrun=True))

    # Set last: Airflow copies the form to every later task, and checks each copy whenever it reads this file.
    pulsar_rolling_restart().params = ROLL


for each in clusters_to_build("pulsar_rolling_restart"):
    rolling_restart_dag(each)
