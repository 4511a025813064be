"""Restoring balancers that runs left off, and auditing the ledger."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from pulsar_advisor.execution.ledger.chain import ChainHead
from pulsar_advisor.execution.ledger.plans import summary_of_plan
from pulsar_advisor.execution.ledger.rolls import give_up, runs_of_roll
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor_airflow.assets import audited_ledger
from pulsar_advisor_airflow.clusters import clusters
from pulsar_advisor_airflow.failures import as_airflow_errors, logged
from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
from pulsar_advisor_airflow.ledger import head_keepers, opened_ledger
from pulsar_advisor_airflow.tasks.root import root_of
from pulsar_advisor_airflow.tasks.runs import await_end, has_begun

if TYPE_CHECKING:
    from pulsar_advisor.execution.ledger.ledger import Ledger

log = logging.getLogger(__name__)


def clusters_to_restore() -> list[str]:
    """Those of the clusters of this installation, and of former ones, whose own balancer a run left off.

    Not the others: a list that is longer than `[core] max_map_length` would fail the task.
    """
    from pulsar_advisor.execution.run.guard.left_off import left_off_by_cluster

    with as_airflow_errors(), opened_ledger(root_of("any")) as ledger:
        known = dict.fromkeys([*clusters(), *left_off_by_cluster(ledger)])
        return [name for name in known if _names_left_off(ledger, name)]


def _names_left_off(ledger: Ledger, cluster: str) -> list[str]:
    """Those of Pulsar's own names of a cluster under which runs left its balancer off, sorted."""
    from pulsar_advisor.execution.ledger.lists import cluster_names
    from pulsar_advisor.execution.run.guard.left_off import left_off

    return sorted(name for name in cluster_names(ledger, cluster) if left_off(ledger, name))


def restore_guard(cluster: str, plan: Mapping[str, str] | None = None) -> None:
    """Restore what a run on this cluster switched off and, because it ended abnormally, never restored.

    `plan` is one whose task has ended, unless this DAG run never began it: then another may be carrying it out. A roll
    that isn't over is given up until somebody goes on with it.
    """
    from pulsar_advisor.execution.ledger.switches import switched_off
    from pulsar_advisor.execution.run.guard.left_off import left_off, warning
    from pulsar_advisor.stages.apply import restore_balancer

    with as_airflow_errors(), opened_ledger(root_of(cluster)) as ledger:
        of_plan = summary_of_plan(ledger, plan["digest"]) if plan and has_begun() else None
        if plan and of_plan and of_plan.cluster == cluster:  # an XCom can be edited
            give_up(ledger, plan["digest"])
            going_on = await_end(ledger, plan["digest"])
            # Also an earlier turn's: what it has switched off, the next ones keep off.
            runs = {run.id for run in runs_of_roll(ledger, plan["digest"])}
            if going_on is not None and any(switch.run in runs for switch in switched_off(ledger)):
                raise AirflowException(
                    f"run {going_on} goes on, though its task has ended: the cluster's balancer is off"
                )
        for name in _names_left_off(ledger, cluster):
            if (registered := clusters().get(cluster)) is None:
                off = "; ".join(warning(switch, name) for switch in left_off(ledger, name))
                raise UsageError(f"{off}; '{cluster}' has no entry in the registry any more: add it again")
            connection = PulsarAdminHook(registered.pulsar_conn_id).options()
            restore_balancer(name, ledger, connection.required_admin, logged(log.warning))
            if still := left_off(ledger, name):
                raise AirflowException(plain("; ".join(warning(switch, name) for switch in still)))


_HEAD: Final = "head"
"""Key in the state store of the ledger's asset."""


def audit_ledger() -> str:
    """Keep and return the ledger's head, if the ledger is unchanged and holds the events of earlier heads.

    The last head of any DAG run is in the state store of the ledger's asset, an inlet.
    """
    from pulsar_advisor.execution.ledger.audit import audit
    from pulsar_advisor.execution.ledger.heads import keep, kept

    known = get_current_context()["asset_state_store"][audited_ledger()]
    with as_airflow_errors(), opened_ledger(root_of("any")) as ledger:
        keepers = head_keepers()
        known_head = known.get(_HEAD)
        result = audit(ledger, [*([ChainHead.parse(known_head)] if known_head else []), *kept(keepers)])
        log.info(result.compared)
    if result.findings:
        raise AirflowFailException(plain(f"the ledger is not as it was written: {'; '.join(result.findings)}"))
    known.set(_HEAD, result.head)
    if failures := keep(ChainHead.parse(result.head), keepers):
        raise AirflowException("; ".join(failures))
    return result.head
