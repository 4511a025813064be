"""`apply` and `verify`: from a plan and a connection to calls, and from a later snapshot to a judgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_advisor.admin.transport import AdminConnection, AdminTransport
from pulsar_advisor.execution.apply import ApplyResult, Progress, apply_plan
from pulsar_advisor.execution.cluster_writes import AdminCluster
from pulsar_advisor.execution.executor import ApplyOptions
from pulsar_advisor.execution.verify import VerifyResult, verify_plan
from pulsar_advisor.model.settings import resolve_settings

if TYPE_CHECKING:
    from pulsar_advisor.execution.ledger import Ledger
    from pulsar_advisor.model.plan import Plan
    from pulsar_advisor.storage import Root


def apply_to_cluster(
    plan: Plan, ledger: Ledger, connection: AdminConnection, options: ApplyOptions, progress: Progress
) -> ApplyResult:
    """Carry out an approved plan on the cluster the connection leads to; see `apply_plan`."""
    with AdminTransport(connection, writes=True) as transport:
        return apply_plan(plan, ledger, AdminCluster(transport), options, progress)


def verify_with_snapshot(plan: Plan, ledger: Ledger, root: Root, snapshot: str) -> VerifyResult:
    """Compare a plan that was carried out with a normalized snapshot taken since; see `verify_plan`."""
    from pulsar_advisor.tables.state import cluster_state, settings_inputs

    settings = resolve_settings(*settings_inputs(root, snapshot)).values
    return verify_plan(plan, ledger, cluster_state(root, snapshot, "fresh"), settings)
