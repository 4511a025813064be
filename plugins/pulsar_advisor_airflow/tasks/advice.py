"""What is advised on a snapshot, whether that is news, and further answers about it."""

from __future__ import annotations

import logging
from dataclasses import asdict

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from pulsar_advisor.documents.document import as_json
from pulsar_advisor.model.plans.canonical_json import Json
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor_airflow.assets import announce
from pulsar_advisor_airflow.clusters import clusters, labelled
from pulsar_advisor_airflow.configuration import report_link, with_host
from pulsar_advisor_airflow.failures import as_airflow_errors, logged
from pulsar_advisor_airflow.ledger import ledger_url_if_any
from pulsar_advisor_airflow.metrics import measured
from pulsar_advisor_airflow.notifiers import CHANGES, TOLD
from pulsar_advisor_airflow.tasks.root import is_newest_advised, require_sealed, root_of

log = logging.getLogger(__name__)


def advised_plan(cluster: str, snapshot: str, *, roll: bool = False) -> dict[str, str]:
    """The plan that `recommend` advises; skips downstream tasks if it advises none.

    Fails if a roll was requested but there is none: no broker would be restarted.
    """
    from pulsar_advisor.storage import plans

    stored = root_of(cluster).snapshot(snapshot)
    with as_airflow_errors():
        require_sealed(stored, "recommend")
        chosen, reason = plans.advised_plan(stored)
    if chosen is None:
        kind = AirflowFailException if roll else AirflowSkipException
        raise kind(plain(f"nothing to approve: {reason}"))
    return asdict(chosen)


def new_advice(cluster: str, snapshot: str) -> dict[str, str]:
    """The advice, if it differs from what people were last notified of; otherwise the task is skipped.

    It is skipped, too, for a snapshot older than the last that was recommended on, as when its DAG run is cleared.

    Two pieces of advice are the same if they move and split the same bundles in the same way. `TellAdvice` keeps what
    people were notified of in the state store of the task's only asset, an inlet, so other clusters' advice doesn't
    interfere.
    """
    from pulsar_advisor.planning.advice.compare import steps_sha256
    from pulsar_advisor.storage import plans

    stored, context = root_of(cluster).snapshot(snapshot), get_current_context()
    with as_airflow_errors():
        chosen, sentence = plans.advised_plan(stored)
        changes = steps_sha256(chosen.load(stored.root).steps if chosen else ())
        is_newest = is_newest_advised(stored)
    if not is_newest:
        raise AirflowSkipException("the advice on a newer snapshot counts")
    if context["asset_state_store"].get(TOLD) == changes:
        raise AirflowSkipException("the advice is the same as last reported")
    context["ti"].xcom_push(CHANGES, changes)
    return {
        "cluster": cluster,
        "snapshot": snapshot,
        "sentence": plain(sentence),
        "digest": chosen.digest if chosen else "",
        "report": with_host(report_link(cluster, snapshot)),
    }


def report(cluster: str, snapshot: str) -> str:
    """Write the HTML report of a snapshot's recommendation; returns its location.

    Each outlet's event has the advised plan's digest.
    """
    from pulsar_advisor.stages.report import run
    from pulsar_advisor.storage.plans import read_recommendation

    root = root_of(cluster)
    stored = root.snapshot(snapshot)
    with as_airflow_errors():
        registered, made = clusters().get(cluster), read_recommendation(stored)
        is_roll = made.advised is not None and made.advised.shedder == ROLL
        base = "pulsar_rolling_restart" if is_roll else "pulsar_rebalance"
        dag = labelled(base, registered) if registered else None
        _, path = run(stored, ledger_url=ledger_url_if_any(root), dag=dag)
        is_newest = is_newest_advised(stored)
    if made.imbalance_ratio is not None and is_newest:
        measured("imbalance_ratio", made.imbalance_ratio, cluster)
    digest = made.advice.digest or ""
    announce(get_current_context(), root=root.url, cluster=cluster, snapshot=snapshot, digest=digest)
    return path


def lint(cluster: str, snapshot: str) -> list[Json]:
    """The rules that the settings of a normalized snapshot's cluster violate, with the effects of proposed changes."""
    from pulsar_advisor.stages.lint import run

    with as_airflow_errors():
        findings, too_little = run(root_of(cluster).snapshot(snapshot))
    if too_little:
        logged(log.warning)(too_little)
    return [as_json(finding) for finding in findings]


def restart_order(cluster: str, snapshot: str, ceiling_ratio: float | None = None) -> Json:
    """The order of a rolling restart that moves each bundle least often; no broker ends above `ceiling_ratio`."""
    from pulsar_advisor.stages.restart_order import run

    with as_airflow_errors():
        return as_json(run(root_of(cluster).snapshot(snapshot), ceiling_ratio))


def scale(cluster: str, snapshot: str, usage_ratio: float = 0.6) -> Json:
    """How many brokers the load of a normalized snapshot needs at this mean usage."""
    from pulsar_advisor.stages.scale import run

    with as_airflow_errors():
        return as_json(run(root_of(cluster).snapshot(snapshot), usage_ratio))


def upgrade(cluster: str, snapshot: str, to: str | None) -> str | None:
    """What an upgrade to this Pulsar release does to the cluster's own balancer, in one line; None without a release.

    The report has the whole answer.
    """
    from pulsar_advisor.recommendation.upgrade import UpgradeRequest
    from pulsar_advisor.reporting.upgrade import upgrade_section
    from pulsar_advisor.stages.upgrade import run

    if not to:
        return None
    with as_airflow_errors():
        return upgrade_section(run(root_of(cluster).snapshot(snapshot), UpgradeRequest(to))).headline
