"""Which plan is put before an approver, and in whose name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from pulsar_advisor.execution.ledger.plans import summary_of_plan
from pulsar_advisor.execution.ledger.proposals import proposals_of_plan
from pulsar_advisor.execution.ledger.runs import runs_of_plan
from pulsar_advisor.execution.ledger.verifications import verifications_of_plan
from pulsar_advisor.execution.person import Person
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.some_of import some_of
from pulsar_advisor_airflow.clusters import dag_of
from pulsar_advisor_airflow.failures import as_airflow_errors, given_plan, was_ever_cleared
from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
from pulsar_advisor_airflow.ledger import AUTHENTICATED_BY, opened_ledger
from pulsar_advisor_airflow.tasks.root import root_of
from pulsar_advisor_airflow.tasks.runs import await_end, has_begun

if TYPE_CHECKING:
    from pulsar_advisor.storage.plans import PlanReference


def plan_by_digest(cluster: str, digest: str, *, roll: bool = False) -> dict[str, str]:
    """The plan whose digest begins as given in the form. Fails unless it is a roll exactly if one is requested."""
    from pulsar_advisor.storage.plans import find_plan

    root = root_of(cluster)
    with as_airflow_errors():
        found = find_plan(root, digest)
        plan = found.load(root)
        if (plan.shedder == ROLL) != roll:
            dag = dag_of("pulsar_rebalance" if roll else "pulsar_rolling_restart", cluster)
            raise UsageError(f"{found.digest} is {'not a' if roll else 'a'} roll: trigger {dag} with it")
        return asdict(found)


def undo_plan(cluster: str, digest: str, pulsar_conn_id: str) -> dict[str, str]:
    """A plan that reverses the moves of a plan's run, based on the ledger and the current cluster.

    Fails if none of them can be reversed any more.
    """
    return _undo_plan(cluster, digest, pulsar_conn_id, AirflowFailException)


def _undo_plan(cluster: str, digest: str, pulsar_conn_id: str, if_none: type[AirflowException]) -> dict[str, str]:
    """The same, with the exception for a plan without a step that can be carried out."""
    from pulsar_advisor.stages.undo import run
    from pulsar_advisor.storage.plans import find_plan

    root = root_of(cluster)
    with as_airflow_errors(), opened_ledger(root) as ledger:
        connection = PulsarAdminHook(pulsar_conn_id).options().required_admin
        undo, written = run(find_plan(root, digest).load(root), ledger, root, connection)
    if not undo.executable_steps:
        reasons = some_of({f"{step.bundle_name}: {step.not_executable_because}" for step in undo.steps})
        raise if_none(plain(f"nothing can be moved back: {reasons}"))
    return asdict(written)


def offered_undo(cluster: str, plan: Mapping[str, str] | None, pulsar_conn_id: str, hours: float) -> dict[str, str]:
    """Propose to undo what this DAG run carried out, if it ended in part or not as predicted; otherwise skipped.

    `hours` is how long the offer can be accepted; 0: no offer is made.
    """
    from pulsar_advisor.execution.undo import can_be_undone

    if not plan or not hours:
        raise AirflowSkipException("there is no plan to undo" if hours else "no offer was requested")
    if not has_begun():
        raise AirflowSkipException("this DAG run carried nothing out")
    # Clearing one of its tasks resets its start.
    began_ms, root = get_current_context()["dag_run"].run_after.timestamp() * 1000, root_of(cluster)
    with as_airflow_errors(), opened_ledger(root) as ledger:
        if (summary := summary_of_plan(ledger, plan["digest"])) is not None and summary.cluster != cluster:
            raise AirflowFailException(plain(f"plan {plan['digest']} is for cluster '{summary.cluster}'"))
        if (going_on := await_end(ledger, plan["digest"])) is not None:
            raise AirflowSkipException(f"run {going_on} of the plan goes on")
        runs = [run for run in runs_of_plan(ledger, plan["digest"]) if (run.ended_at_ms or 0) >= began_ms]
        if not runs or not can_be_undone(given_plan(plan).load(root), ledger):
            raise AirflowSkipException("this DAG run moved nothing that can be moved back")
        judged = [one for one in verifications_of_plan(ledger, plan["digest"]) if one.run_id == runs[-1].id]
    if runs[-1].state == "done" and (not judged or judged[-1].as_predicted):
        raise AirflowSkipException("nothing is known to have gone wrong; to undo the run, tick Undo in the form")
    return _proposed(cluster, given_plan(_undo_plan(cluster, plan["digest"], pulsar_conn_id, AirflowSkipException)))


def propose(cluster: str, *candidates: Mapping[str, str] | None) -> dict[str, str]:
    """Record that the user who triggered the DAG run proposes a plan, namely the first of `candidates` that exists.

    Fails if the DAG run, or this task, was cleared and they didn't propose this plan before: then the plan was made for
    whoever cleared it, and Airflow doesn't say who that was. That person could approve it, too.
    """
    reference = given_plan(next(filter(None, candidates), None))
    context = get_current_context()
    dag_run = context["dag_run"]
    if dag_run.clear_number or was_ever_cleared(context):
        with as_airflow_errors(), opened_ledger(root_of(cluster)) as ledger:
            before = {proposal.proposer for proposal in proposals_of_plan(ledger, reference.digest)}
        if dag_run.triggering_user_name not in before:
            raise AirflowFailException(
                "this DAG run was cleared, and Airflow doesn't report by whom, so the proposer of "
                f"{reference.digest}, which was made afterwards, is unknown: trigger a DAG run of your own"
            )
    return _proposed(cluster, reference)


def _proposed(cluster: str, reference: PlanReference) -> dict[str, str]:
    from pulsar_advisor.execution.consent import approval
    from pulsar_advisor.stages.derive import why_not_computed_here

    proposer = get_current_context()["dag_run"].triggering_user_name
    if proposer is None:
        raise AirflowFailException("Airflow doesn't report who triggered this run, so the plan has no proposer")
    root = root_of(cluster)
    with as_airflow_errors(), opened_ledger(root) as ledger:
        plan, person = reference.load(root), Person(proposer, AUTHENTICATED_BY)
        approval.propose(ledger, plan, person, why_not_computed_here(root, ledger, plan))
    return asdict(reference)
