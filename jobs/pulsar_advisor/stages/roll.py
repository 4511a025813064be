"""`roll continue`, `roll end`: carries a roll on on a cluster, each turn planned on a fresh snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pulsar_advisor.admin.metadata_store import StoreConnection, connected
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.execution.cluster.restart_port import LeadersView, Published, published
from pulsar_advisor.execution.roll.conduct import PlanAnew, Roll
from pulsar_advisor.execution.run.options import Interruption, undisturbed
from pulsar_advisor.model.errors import DataNotFit
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages.capture import run as capture
from pulsar_advisor.stages.derive import why_not_computed_here
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.recommend import run as recommend
from pulsar_advisor.stages.seal import seal, sealing
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.plans import PlanReference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pulsar_advisor.admin.options import CaptureOptions
    from pulsar_advisor.execution.consent.policy import ApprovalPolicy
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.model.plans.goal import Goal
    from pulsar_advisor.model.plans.plan import Plan
    from pulsar_advisor.storage.root import Root

Sparks = Callable[[str], "SparkSession"]
"""A Spark session that is large enough for a snapshot."""


@contextmanager
def reached(
    plan: Plan,
    root: Root,
    open_ledger: Callable[[], Ledger],
    ledger: Ledger,
    options: CaptureOptions,
    policy: ApprovalPolicy,
    spark: Sparks,
    progress: Callable[[str], None],
    interruption: Interruption = undisturbed,
) -> Iterator[Roll]:
    """A roll on the cluster of a connection, within the block. `open_ledger` opens the same ledger once more."""
    with AdminTransport(options.required_admin, writes=True) as transport:
        cluster = AdminCluster(transport)
        yield Roll(
            plan=plan,
            ledger=ledger,
            cluster=cluster,
            brokers=cluster,
            leaders_view=_leaders_view(options.metadata_store, cluster),
            plan_anew=_plan_anew(plan, root, open_ledger, ledger, options, spark),
            policy=policy,
            progress=progress,
            interruption=interruption,
        )


def _leaders_view(store: StoreConnection | None, cluster: AdminCluster) -> LeadersView:
    def view() -> Mapping[str, Published] | None:
        if store is None or cluster.load_manager() != "modular":
            return None
        with connected(store) as reader:
            return published(reader.broker_nodes())

    return view


def _plan_anew(
    roll: Plan,
    root: Root,
    open_ledger: Callable[[], Ledger],
    ledger: Ledger,
    options: CaptureOptions,
    spark: Sparks,
) -> PlanAnew:
    def plan(goal: Goal) -> tuple[Plan, str | None]:
        snapshot = capture(options, root)
        seal(open_ledger, root, snapshot, "capture")
        session = spark(snapshot)
        with sealing(open_ledger, root, snapshot, "normalize"):
            normalize(session, root, snapshot)
        with sealing(open_ledger, root, snapshot, "validate"):
            validate(session, root, snapshot)
        asked = replace(Request.of_plan(roll), goal=goal)
        [answer] = recommend(lambda: session, root, snapshot, asked).combinations
        seal(open_ledger, root, snapshot, "recommend")
        if answer.plan is None or answer.digest is None:
            raise DataNotFit(
                f"no plan of the turn could be made from snapshot {snapshot}: {answer.error or 'no reason'}"
            )
        made = PlanReference(snapshot, answer.plan, answer.digest).load(root)
        return made, why_not_computed_here(root, ledger, made)

    return plan
