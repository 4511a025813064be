"""The light tasks between the stages: they read a stage's result file and make a decision, or pass an id on.

Plain functions, which the DAG files turn into tasks. The product's exit codes 2 to 5 become failures without retry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from pulsar_advisor_airflow.configuration import option
from pulsar_advisor_airflow.failures import as_airflow_errors

if TYPE_CHECKING:
    from pulsar_advisor.storage.root import Root


def require_trusted_snapshot(snapshot: str) -> str:
    """The snapshot's id, if validation passed; each outlet gets an event with the snapshot's location."""
    from pulsar_advisor.storage.files import read_json
    from pulsar_advisor.storage.root import RESULT
    from pulsar_advisor.storage.shapes import VALIDATION_RESULT_SCHEMA

    root = _root()
    with as_airflow_errors():
        result = read_json(root.folder("validation", snapshot) / RESULT, "validate", [VALIDATION_RESULT_SCHEMA])
    if not result["success"]:
        failed = [
            check["title"] for check in result["results"] if check["severity"] == "critical" and not check["success"]
        ]
        raise AirflowFailException(f"snapshot {snapshot} must not be used: {'; '.join(failed)}")
    context = get_current_context()
    for outlet in context["task"].outlets:
        context["outlet_events"][outlet].extra = {"root": root.url, "cluster": root.cluster, "snapshot": snapshot}
    return snapshot


def snapshot_to_recommend_on() -> str:
    """The snapshot of the latest asset event that triggered the DAG run, or the one named in its form."""
    context = get_current_context()
    events = [event for events in context["triggering_asset_events"].values() for event in events]
    if events:
        return str(events[-1].extra["snapshot"])
    if named := context["params"]["snapshot"]:
        return str(named)
    raise AirflowFailException("name a snapshot: a manual run has no asset event that names one")


def advised_plan(snapshot: str) -> dict[str, str] | None:
    """The plan that `recommend` made, or the advised one of several; skips downstream tasks if there is none."""
    from pulsar_advisor.storage import plans

    with as_airflow_errors():
        chosen, reason = plans.advised_plan(_root(), snapshot)
    if chosen is None:
        raise AirflowSkipException(f"nothing to approve: {reason}")
    return asdict(chosen)


def plan_by_digest(digest: str) -> dict[str, str]:
    """The plan with the digest given in the form."""
    from pulsar_advisor.storage.plans import find_plan

    with as_airflow_errors():
        return asdict(find_plan(_root(), digest))


def undo_plan(digest: str, pulsar_conn_id: str) -> dict[str, str]:
    """A plan that reverses the moves of a plan's run, based on the ledger and the current cluster."""
    from pulsar_advisor.model.plan import digest_of
    from pulsar_advisor.stages.undo import run
    from pulsar_advisor.storage.plans import PlanReference, find_plan
    from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
    from pulsar_advisor_airflow.ledger import opened_ledger

    root = _root()
    with as_airflow_errors(), opened_ledger(root) as ledger:
        connection = PulsarAdminHook(pulsar_conn_id).options().required_admin
        undo, file = run(find_plan(root, digest).load(root), ledger, root, connection)
    return asdict(PlanReference(undo.snapshot, file, digest_of(undo)))


def propose(*candidates: Mapping[str, str] | None) -> dict[str, str]:
    """Record that the user who triggered the DAG run proposes a plan, namely the first of `candidates` that exists."""
    from pulsar_advisor.execution import approval
    from pulsar_advisor.execution.person import Person
    from pulsar_advisor.storage.plans import PlanReference
    from pulsar_advisor_airflow.ledger import AUTHENTICATED_BY, opened_ledger

    reference = PlanReference(**next(candidate for candidate in candidates if candidate))
    proposer = get_current_context()["dag_run"].triggering_user_name
    if proposer is None:
        raise AirflowFailException("Airflow doesn't report who triggered this run, so the plan has no proposer")
    root = _root()
    with as_airflow_errors(), opened_ledger(root) as ledger:
        approval.propose(ledger, reference.load(root), Person(proposer, AUTHENTICATED_BY))
    return asdict(reference)


def verify(plan: Mapping[str, str], snapshot: str) -> dict[str, Any]:
    """Compare prediction and outcome, using a snapshot taken after the plan was carried out."""
    from pulsar_advisor.stages.verify import run
    from pulsar_advisor.storage.plans import PlanReference
    from pulsar_advisor_airflow.ledger import opened_ledger

    root = _root()
    with as_airflow_errors(), opened_ledger(root) as ledger:
        result = run(PlanReference(**plan).load(root), ledger, root, snapshot)
    if result.deviations:
        raise AirflowFailException(
            f"the cluster is not as predicted: {'; '.join(result.deviations)}; to take the run back, start "
            f"pulsar_rebalance with digest {result.digest} and Undo ticked"
        )
    return result.as_document()


def report(snapshot: str) -> str:
    """Write the HTML report of a snapshot's recommendation; returns its location."""
    from pulsar_advisor.stages.report import run
    from pulsar_advisor_airflow.ledger import ledger_head

    root = _root()
    with as_airflow_errors():
        _, path = run(root, snapshot, ledger_head=ledger_head(root))
    return path


def _root() -> Root:
    from pulsar_advisor.storage.root import Root

    return Root(option("root"), option("cluster"))
