"""What came of a plan that was carried out, and whether the DAG run succeeded."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from pulsar_advisor.model.plans.canonical_json import Json
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor_airflow.assets import announce
from pulsar_advisor_airflow.clusters import dag_of
from pulsar_advisor_airflow.failures import as_airflow_errors, given_plan
from pulsar_advisor_airflow.ledger import opened_ledger
from pulsar_advisor_airflow.tasks.root import root_of


def judged_from(cluster: str, plan: Mapping[str, str] | None) -> str:
    """When `verify` can judge usage (ISO 8601): until then brokers report figures from before the run."""
    from pulsar_advisor.stages.verify import judged_from

    root = root_of(cluster)
    with as_airflow_errors(), opened_ledger(root) as ledger:
        return judged_from(given_plan(plan).load(root), ledger, root).isoformat()


def verify(cluster: str, plan: Mapping[str, str] | None, snapshot: str) -> Json:
    """Compare prediction and outcome, using a snapshot taken after the plan was carried out.

    Returns the run and the snapshot it was verified with; the ledger has the figures.
    """
    from pulsar_advisor.stages.verify import run

    root = root_of(cluster)
    with as_airflow_errors(), opened_ledger(root) as ledger:
        result = run(given_plan(plan).load(root), ledger, root.snapshot(snapshot))
    announce(get_current_context(), cluster=cluster, digest=result.digest, run=result.run, snapshot=result.snapshot)
    if result.deviations:
        raise AirflowFailException(
            f"the cluster is not as predicted: {plain('; '.join(result.deviations))}; to undo the run, trigger "
            f"{dag_of('pulsar_rebalance', cluster)} with digest {result.digest} and Undo ticked"
        )
    return {name: getattr(result, name) for name in ("digest", "run", "snapshot", "as_predicted", "ledger_head")}


def require_success() -> None:
    """Fail if a task above this one failed, or if not all right above it were carried out; skipped if none was.

    For a teardown: when somebody marks a DAG run as failed, Airflow has all other tasks that are due skipped, and takes
    the state of the DAG run from those.
    """
    ti = get_current_context()["ti"]
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id])[ti.run_id]
    if failed := sorted(task for task in ti.task.get_flat_relative_ids(upstream=True) if states.get(task) == "failed"):
        raise AirflowFailException(f"failed: {', '.join(failed)}")
    last = {states.get(task) for task in ti.task.upstream_task_ids}
    if "success" not in last:
        raise AirflowSkipException("there was nothing to carry out")
    if last != {"success"}:
        raise AirflowFailException("somebody ended this DAG run before it was carried out")
