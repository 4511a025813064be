"""# Rebalance a Pulsar cluster after a named person has approved the exact plan

Runs only when triggered manually. Choose the cluster. Enter the **digest** of a plan you have reviewed, or leave it
empty to capture a fresh snapshot and run the strategies chosen in the form, or to make a plan for a goal: drain,
relieve or fill brokers, or conform to policies. The user who triggers the run proposes the plan and **can't approve
it**.

| task | what it does |
|---|---|
| `plan_by_digest` | finds the plan with the digest |
| `undo_plan` | or makes the plan that reverses the moves of that plan's run |
| `fresh` | or makes a plan from a fresh snapshot; skips the rest if there is nothing to do |
| `propose` | records the proposal in the ledger under the name of the user who triggered the run |
| `approve` | shows the plan and waits (*Required Actions*). No response in time counts as a rejection |
| `apply` | carries the plan out step by step, trusting only the observed state of the cluster; deferred in long waits |
| `after`, `verify` | compares prediction and outcome, using another fresh snapshot |
| `as_predicted` | fails the DAG run if `apply` or `verify` failed |
| `undo` | then offers to take the run back, for an hour unless the form says otherwise: another gate, another `apply` |
| `restore_guard` | however `apply` ended: switches the cluster's own balancer on again, if a run left it off |

After a rejection all tasks downstream of `approve` are skipped and nothing is written to the cluster. A failed `apply`
with steps left can be cleared: it resumes from the cluster's current state. To take a run back, trigger this DAG again
with the plan's digest and *Undo* ticked.
"""

from __future__ import annotations

from functools import partial

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import Param, TaskGroup, chain, dag, get_current_context, task

from pulsar_advisor.model.bounds import (
    CANARY_HOLD,
    EXPIRES,
    IN_FLIGHT,
    MAX_AGE,
    PAUSE_BETWEEN,
    PER_DESTINATION,
    PER_NAMESPACE,
    PER_SOURCE,
    TOPICS_PER_MINUTE,
)
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.clusters import clusters
from pulsar_advisor_airflow.configuration import guard_notifiers
from pulsar_advisor_airflow.failures import RETRIES
from pulsar_advisor_airflow.forms import (
    CONFIGURED,
    FORM_MACROS,
    GOAL,
    GOAL_ARGUMENTS,
    HOUR_S,
    LIMIT_ARGUMENTS,
    LIMITS,
    STRATEGY_ARGUMENTS,
    cluster_param,
    number_param,
    optional_number_param,
    strategy_params,
)
from pulsar_advisor_airflow.notifiers import Call
from pulsar_advisor_airflow.operators.apply import PulsarApplyOperator
from pulsar_advisor_airflow.operators.approval import PlanApprovalOperator
from pulsar_advisor_airflow.run_limits import FIRST, WAITING_RUNS
from pulsar_advisor_airflow.stages import captured, place_in_form, spark_stage, trusted_snapshot

LIMITS_OF_A_RUN = (
    "pause_s",
    "canary_hold_s",
    "in_flight",
    "per_source",
    "per_destination",
    "per_namespace",
    "topics_per_minute",
    "guard",
)
"""Fields of the form that are limits of `ApplyThrottle` of the same name."""


@task.branch
def given_or_fresh() -> str:
    """The branch that provides the plan."""
    params = get_current_context()["params"]
    if not params["digest"]:
        return "fresh.capture"
    return "undo_plan" if params["undo"] else "plan_by_digest"


@dag(
    schedule=None,
    render_template_as_native_obj=True,  # preserves the types of numbers and lists in the form
    user_defined_macros=FORM_MACROS,
    allowed_run_types=["manual"],
    max_active_runs=WAITING_RUNS * len(clusters()),
    is_paused_upon_creation=False,
    doc_md=__doc__,
    tags=["pulsar", "writes-to-cluster"],
    default_args={"owner": "pulsar-advisor", "on_failure_callback": [Call("task.failed")], **FIRST, **RETRIES},
    params={
        "cluster": cluster_param(),
        "digest": Param(
            None,
            type=["null", "string"],
            pattern="^(sha256:)?[0-9a-f]{6,64}$",
            title="Digest of a plan",
            description="Its first digits, as a report shows them, will do. Empty: recommend on a fresh snapshot",
        ),
        "undo": Param(
            False,
            type="boolean",
            title="Undo the plan of that digest",
            description="Move back what its run moved, as far as the ledger confirms it; with a new approval",
        ),
        **strategy_params(CONFIGURED, CONFIGURED),
        **GOAL,
        **LIMITS,
        "max_age_h": number_param(6, MAX_AGE, "Maximum age of the snapshot (hours)", "Limits", unit_s=HOUR_S),
        "pause_s": number_param(10, PAUSE_BETWEEN, "Pause between two calls, or waves of calls (seconds)", "Limits"),
        "canary_hold_s": number_param(60, CANARY_HOLD, "Hold time of the first step (seconds)", "Limits"),
        "in_flight": number_param(1, IN_FLIGHT, "Steps in flight", "Limits"),
        "per_source": number_param(2, PER_SOURCE, "Of these, from one broker", "Limits"),
        "per_destination": number_param(2, PER_DESTINATION, "Of these, to one broker", "Limits"),
        "per_namespace": number_param(2, PER_NAMESPACE, "Of these, of one namespace", "Limits"),
        "topics_per_minute": optional_number_param(TOPICS_PER_MINUTE, "Topics unloaded per minute"),
        "until": Param(
            None,
            type=["null", "string"],
            pattern=r"^([01]\d|2[0-3]):[0-5]\d$",
            title="Send nothing after (HH:MM)",
            description="In UTC, the first one after the start of this DAG run. Clear the task to go on with the rest",
            section="Limits",
        ),
        "guard": Param(
            False,
            type="boolean",
            title="Switch the cluster's own balancer off during the run",
            description="loadBalancerSheddingEnabled and loadBalancerAutoBundleSplitEnabled; restored afterwards",
            section="Limits",
        ),
        "answer_within_h": Param(
            4, type="number", exclusiveMinimum=0, maximum=72, title="Wait for an answer (hours)", section="Approval"
        ),
        "offer_undo_h": Param(
            1,
            type="number",
            minimum=0,
            maximum=72,
            title="If it goes wrong, offer to undo it for (hours)",
            description="0: no offer",
            section="Approval",
        ),
        "expires_h": number_param(4, EXPIRES, "Approval valid for (hours)", "Approval", unit_s=HOUR_S),
        "approvers": Param(
            [],
            type=["null", "array"],
            items={"type": "string"},
            title="Only these may answer",
            description="User names, one per line. Empty: every user who may write to this DAG, but never the proposer",
            section="Approval",
        ),
    },
)
def pulsar_rebalance() -> None:
    """Plan → propose → approve → apply → verify."""
    place = place_in_form()
    # Native templates would make a number of digits such as 123e45.
    digest = "sha256:{{ (params.digest or '') | replace('sha256:', '') }}"
    given = task(multiple_outputs=False)(tasks.plan_by_digest)(place.cluster, digest)
    undone = task(multiple_outputs=False)(tasks.undo_plan)(place.cluster, digest, place.pulsar_conn_id)
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
        "throttle": {
            "max_age_s": "{{ (params.max_age_h * 3600) | int }}",
            **{limit: f"{{{{ params.{limit} }}}}" for limit in LIMITS_OF_A_RUN},
        },
        "approvers": "{{ params.approvers }}",
    }
    gate = PlanApprovalOperator(task_id="approve", plan=plan, answer_within_h="{{ params.answer_within_h }}", **asked)
    carried_out = partial(
        PulsarApplyOperator,
        task_id="apply",
        root=place.root,
        cluster=place.cluster,
        pulsar_conn_id=place.pulsar_conn_id,
        deferrable=True,
    )
    applied = carried_out(plan=plan, until="{{ params.until or '' }}")
    with TaskGroup("after") as after:
        later = captured(place)
        chain(later, spark_stage("normalize", place, later))
    verified = task(multiple_outputs=False)(tasks.verify)(place.cluster, plan, later)
    chain(gate, applied, after, verified)
    restore = task(on_failure_callback=guard_notifiers())(tasks.restore_guard)
    chain(applied, restore(place.cluster).as_teardown(on_failure_fail_dagrun=True))
    # A DAG run's state is that of its last tasks: without this one it would succeed, since the offer is made anyway.
    chain(verified, EmptyOperator(task_id="as_predicted"))
    with TaskGroup("undo"):
        offer = task(task_id="offer", trigger_rule="all_done", multiple_outputs=False)(tasks.offered_undo)
        undo = offer(place.cluster, plan, place.pulsar_conn_id, "{{ params.offer_undo_h }}")
        undo_gate = PlanApprovalOperator(
            task_id="approve", plan=undo, answer_within_h="{{ params.offer_undo_h }}", asks_policy=False, **asked
        )
        undo_applied = carried_out(plan=undo)
        failed = {"trigger_rule": "one_failed", "on_failure_callback": guard_notifiers()}
        restored = task(**failed)(tasks.restore_guard)(place.cluster)
        chain(verified, undo, undo_gate, undo_applied, restored)


pulsar_rebalance()
