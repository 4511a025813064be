"""`undo`: writes the plan that reverses a run's moves next to the original plan. Sends nothing to the cluster."""

from __future__ import annotations

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.execution.clock import SYSTEM_CLOCK
from pulsar_advisor.execution.cluster.cluster_port import LOOK_AGAIN_S
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.undo import propose_undo
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.storage.plans import PlanReference, write_plan
from pulsar_advisor.storage.root import Root


def run(plan: Plan, ledger: Ledger, root: Root, connection: AdminConnection) -> tuple[Plan, PlanReference]:
    """Returns the undo plan and where it was written; see `propose_undo`."""
    with AdminTransport(connection) as transport:
        undo = propose_undo(plan, ledger, AdminCluster(transport, is_preview=True))
        if len(undo.executable_steps) < len(undo.steps):  # such as a bundle on its way
            SYSTEM_CLOCK.sleep(LOOK_AGAIN_S)
            again = propose_undo(plan, ledger, AdminCluster(transport, is_preview=True))
            undo = max(undo, again, key=lambda one: len(one.executable_steps))
    return undo, write_plan(root, undo)
