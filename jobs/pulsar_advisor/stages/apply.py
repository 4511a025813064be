"""`apply`: carries out an approved plan on the cluster of a connection."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from pulsar_advisor.admin.connection import AdminConnection
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.execution.apply import apply_plan
from pulsar_advisor.execution.clock import SYSTEM_CLOCK
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.execution.cluster.probe import PublishProbe, publishing
from pulsar_advisor.execution.ledger.approvals import record_refusal
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.person import Person
from pulsar_advisor.execution.run.end_of_run import AttemptResult
from pulsar_advisor.execution.run.guard.left_off import left_off
from pulsar_advisor.execution.run.guard.restoring import restore_what_was_left
from pulsar_advisor.execution.run.guard.settings import why_not_off
from pulsar_advisor.execution.run.options import ApplyOptions, Interruption, Progress, Work, undisturbed
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.model.plans.sealed import digest_of


def run(
    plan: Plan,
    ledger: Ledger,
    connection: AdminConnection,
    options: ApplyOptions,
    progress: Progress,
    interruption: Interruption = undisturbed,
    probe: PublishProbe | None = None,
) -> AttemptResult:
    """Carry out an approved plan; see `apply_plan`."""
    with AdminTransport(connection, writes=True) as transport, ExitStack() as stack:
        if probe is not None and not options.dry_run:
            try:
                options = replace(options, probe=stack.enter_context(publishing(probe, transport)))
            except Refused as refused:
                record_refusal(ledger, digest_of(plan), str(refused))
                raise
        return apply_plan(plan, options, Work(ledger, AdminCluster(transport), progress, interruption=interruption))


def why_balancer_is_on(connection: AdminConnection, cluster_name: str) -> str | None:
    """Why a cluster's own balancer isn't off, while a drained broker waits for its restart; None if it is off.

    Raises `Refused` if the connection reaches another cluster than that of Pulsar's own name.
    """
    with AdminTransport(connection) as transport:
        cluster = AdminCluster(transport)
        _require_reached(cluster, cluster_name)
        return why_not_off(cluster, SYSTEM_CLOCK)


def restore_balancer(
    cluster_name: str,
    ledger: Ledger,
    connection: AdminConnection,
    progress: Progress,
    decided_by: Person | None = None,
) -> None:
    """Restore what earlier runs left switched off on a cluster (Pulsar's own name); sends nothing else.

    If a person decides, that includes a `false` that may be someone else's, see `guard`. Raises `Refused` if the
    connection reaches another cluster.
    """
    if left_off(ledger, cluster_name):
        with AdminTransport(connection, writes=True) as transport:
            cluster = AdminCluster(transport)
            _require_reached(cluster, cluster_name)
            restore_what_was_left(Work(ledger, cluster, progress), cluster_name, decided_by)


def _require_reached(cluster: AdminCluster, cluster_name: str) -> None:
    if (reached := cluster.cluster_name()) != cluster_name:
        raise Refused(f"the connection reaches cluster '{reached}', not '{cluster_name}'")
