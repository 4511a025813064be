"""# Rebalance a Pulsar cluster after a named person has approved the exact plan

Runs only when triggered manually. Choose the cluster. Enter the **digest** of a plan you have reviewed, or leave it
empty to capture a fresh snapshot and run the strategies chosen in the form, or to make a plan for a goal, such as to
drain a broker. The user who triggers the run proposes the plan and **can't approve it**.

| task | what it does |
|---|---|
| `plan_by_digest` | finds the plan with the digest |
| `undo_plan` | or makes the plan that reverses the moves of that plan's run |
| `fresh` | or makes a plan from a fresh snapshot; skips the rest if there is nothing to do |
| `propose` | records the proposal in the ledger under the name of the user who triggered the run |
| `approve` | shows the plan and waits (*Required Actions*). No response in time counts as a rejection |
| `apply` | carries the plan out step by step, trusting only the observed state of the cluster; deferred in long waits |
| `after`, `verify` | once brokers report anew, compares prediction and outcome, using another fresh snapshot |
| `as_predicted` | fails the DAG run if `apply` or `verify` failed, or somebody ended it before |
| `undo` | then offers to take the run back, for an hour unless the form says otherwise: another gate, another `apply` |
| `restore_guard` | however `apply` ended: switches the cluster's own balancer on again, if a run left it off |

A rejection fails `approve`, and nothing is written to the cluster. A failed `apply` with steps left can be cleared: it
resumes from the cluster's current state. To take a run back, trigger this DAG again with the plan's digest and *Undo*
ticked. Each cluster of the registry has a DAG like this one: who may edit it may propose, approve and stop.
"""

from __future__ import annotations

from functools import partial

from airflow.providers.standard.sensors.date_time import DateTimeSensorAsync
from airflow.sdk import TaskGroup, chain, dag, get_current_context, task

from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.assets import applied, verified
from pulsar_advisor_airflow.clusters import Cluster, clusters_to_build, labelled
from pulsar_advisor_airflow.configuration import guard_notifiers
from pulsar_advisor_airflow.forms import (
    DIGEST,
    FORM_MACROS,
    GOAL_ARGUMENTS,
    LIMIT_ARGUMENTS,
    REBALANCE,
    STRATEGY_ARGUMENTS,
    THROTTLE,
    filled_in,
)
from pulsar_advisor_airflow.notifiers import Call
from pulsar_advisor_airflow.operators.apply import PulsarApplyOperator
from pulsar_advisor_airflow.operators.approval import PlanApprovalOperator
from pulsar_advisor_airflow.release import require_release
from pulsar_advisor_airflow.run_limits import WAITING_RUNS, on_request
from pulsar_advisor_airflow.stages import captured, described, place_of, spark_stage, trusted_snapshot

require_release("0.1.0", __file__)


@task.branch
def given_or_fresh() -> str:
    """The branch that provides the plan. Fails if the form contradicts itself."""
    params = filled_in(REBALANCE, get_current_context())
    if not params["digest"]:
        return "fresh.capture"
    return "undo_plan" if params["undo"] else "plan_by_digest"


def rebalance_dag(cluster: Cluster) -> None:
    """Add a cluster's DAG to this file."""

    @dag(
        labelled("pulsar_rebalance", cluster),
        schedule=None,
        user_defined_macros=FORM_MACROS,
        doc_md=described(__doc__, cluster),
        tags=["pulsar", "writes-to-cluster", cluster.name],
        **on_request(max_active_runs=WAITING_RUNS),
    )
    def pulsar_rebalance() -> None:
        """Plan → propose → approve → apply → verify."""
        place = place_of(cluster)
        given = task(multiple_outputs=False)(tasks.plan_by_digest)(place.cluster, DIGEST)
        undone = task(multiple_outputs=False)(tasks.undo_plan)(place.cluster, DIGEST, place.pulsar_conn_id)
        with TaskGroup("fresh") as fresh:
            snapshot = trusted_snapshot(place)
            made = task(task_id="plan", multiple_outputs=False)(tasks.advised_plan)(place.cluster, snapshot)
            arguments = (*STRATEGY_ARGUMENTS, *LIMIT_ARGUMENTS, *GOAL_ARGUMENTS)
            recommended = spark_stage("recommend", place, snapshot, arguments)
            chain(recommended, task(tasks.report)(place.cluster, snapshot), made)
        chain(given_or_fresh(), [given, undone, fresh])

        proposed = task(trigger_rule="none_failed_min_one_success", multiple_outputs=False)(tasks.propose)
        plan = proposed(place.cluster, given, undone, made)
        asked = {
            "root": place.root,
            "cluster": place.cluster,
            "valid_for_h": "{{ params.expires_h }}",
            "throttle": THROTTLE,
            "approvers": "{{ params.approvers }}",
        }
        within = "{{ params.answer_within_h }}"
        gate = PlanApprovalOperator(task_id="approve", plan=plan, answer_within_h=within, fail_on_reject=True, **asked)
        carried_out = partial(
            PulsarApplyOperator,
            task_id="apply",
            root=place.root,
            cluster=place.cluster,
            pulsar_conn_id=place.pulsar_conn_id,
            deferrable=True,
            outlets=[applied(cluster)],
        )
        executed = carried_out(plan=plan, until="{{ params.until or '' }}")
        with TaskGroup("after") as after:
            # Deferred until brokers have reported again: usage from before the run can't be judged.
            moment = task(task_id="judged_from")(tasks.judged_from)(place.cluster, plan)
            settled = DateTimeSensorAsync(task_id="settle", target_time=moment)
            later = captured(place)
            chain(settled, later, spark_stage("normalize", place, later))
        verify = task(multiple_outputs=False, outlets=[verified(cluster)])(tasks.verify)
        judged = verify(place.cluster, plan, later)
        chain(gate, executed, after, judged)
        restore = task(on_failure_callback=[*guard_notifiers(), Call("task.failed")])(tasks.restore_guard)
        chain(executed, restore(place.cluster, plan).as_teardown(on_failure_fail_dagrun=True))
        # A DAG run's state is that of its last tasks: without this one it would succeed, as the offer is made anyway.
        as_predicted = task(task_id="as_predicted", on_failure_callback=[])(tasks.require_success)
        chain([gate, executed, judged], as_predicted().as_teardown(on_failure_fail_dagrun=True))
        with TaskGroup("undo"):
            offer = task(task_id="offer", trigger_rule="all_done", multiple_outputs=False)(tasks.offered_undo)
            undo = offer(place.cluster, plan, place.pulsar_conn_id, "{{ params.offer_undo_h }}")
            undo_gate = PlanApprovalOperator(
                task_id="approve", plan=undo, answer_within_h="{{ params.offer_undo_h }}", asks_policy=False, **asked
            )
            taken_back = carried_out(plan=undo)
            # However it ended, unless it never came to it: a run that is done may have left the balancer off, too.
            ended = {"trigger_rule": "none_skipped", "on_failure_callback": [*guard_notifiers(), Call("task.failed")]}
            restored = task(**ended)(tasks.restore_guard)(place.cluster, undo)
            chain([executed, judged], undo, undo_gate, taken_back, restored)

    # Set last: Airflow copies the form to every later task, and checks each copy whenever it reads this file.
    pulsar_rebalance().params = REBALANCE


for each in clusters_to_build("pulsar_rebalance"):
    rebalance_dag(each)
