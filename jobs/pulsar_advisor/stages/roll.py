"""`roll`: plans a rolling restart and each of its turns, and carries it on, on the cluster of a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Final

from pyspark.sql import SparkSession

from pulsar_advisor.admin.metadata_store import StoreConnection, connected
from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.transport import AdminTransport
from pulsar_advisor.documents.recommendation import Recommendation
from pulsar_advisor.execution.cluster.cluster_writes import AdminCluster
from pulsar_advisor.execution.cluster.restart_port import LeadersView, Published, published
from pulsar_advisor.execution.consent.policy import ApprovalPolicy
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.roll.conduct import Roll
from pulsar_advisor.execution.run.options import Interruption, undisturbed
from pulsar_advisor.model.errors import DataNotFit, Refused
from pulsar_advisor.model.plans.goal import ROLL, Goal
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages.capture import run as capture
from pulsar_advisor.stages.derive import why_not_computed_here
from pulsar_advisor.stages.normalize import run as normalize
from pulsar_advisor.stages.recommend import run as recommend
from pulsar_advisor.stages.roll_order import run as roll_order
from pulsar_advisor.stages.seal import seal, sealing
from pulsar_advisor.stages.validate import run as validate
from pulsar_advisor.storage.plans import PlanReference, read_recommendation
from pulsar_advisor.storage.root import Root, Snapshot

Turn = Callable[[Snapshot, "Goal"], None]
"""Makes the plan of a turn from a captured snapshot: see `run`."""
SEALED: Final = ("normalize", "validate", "recommend")
"""The stages that a turn runs."""


def plan(
    spark: SparkSession,
    snapshot: Snapshot,
    brokers: Sequence[str] = (),
    spare: Sequence[str] = (),
    ceiling_ratio: float | None = None,
) -> Recommendation:
    """The plan of a roll, from a snapshot that was judged; the arguments are those of `stages.roll_order`."""
    order = roll_order(snapshot, brokers, spare, ceiling_ratio)
    goal = Goal(ROLL, order.brokers, None, ceiling_ratio)
    return recommend(lambda: spark, snapshot, Request(goal=goal, splits=False))


def run(spark: SparkSession, snapshot: Snapshot, roll: Plan, left: Sequence[str]) -> Recommendation:
    """Normalize a captured snapshot, judge it, and make the plan of the next turn of a roll; `left` are broker ids."""
    normalize(spark, snapshot)
    validate(spark, snapshot)
    assert roll.goal is not None, "as a roll has one"
    asked = replace(Request.of_plan(roll), goal=replace(roll.goal, brokers=tuple(left)))
    return recommend(lambda: spark, snapshot, asked)


def in_a_session(roll: Plan, ledger: Ledger, spark: Callable[[Snapshot], SparkSession]) -> Turn:
    """Makes turns in this process, in a Spark session large enough for the snapshot."""

    def turn(snapshot: Snapshot, goal: Goal) -> None:
        session = spark(snapshot)
        with sealing(lambda: nullcontext(ledger), snapshot, *SEALED):
            run(session, snapshot, roll, goal.brokers)

    return turn


@contextmanager
def reached(
    plan: Plan,
    root: Root,
    ledger: Ledger,
    options: CaptureOptions,
    policy: ApprovalPolicy,
    turn: Turn,
    progress: Callable[[str], None],
    interruption: Interruption = undisturbed,
) -> Iterator[Roll]:
    """A roll on the cluster of a connection, within the block."""

    def plan_anew(goal: Goal) -> tuple[Plan, str | None]:
        snapshot = capture(options, root)
        seal(lambda: nullcontext(ledger), snapshot, "capture")
        if reason := interruption():
            raise Refused(f"nothing was sent: {reason}")
        turn(snapshot, goal)
        [answer] = read_recommendation(snapshot).combinations
        if answer.plan is None or answer.digest is None:
            raise DataNotFit(f"the turn couldn't be planned from snapshot {snapshot}: {answer.error or 'no reason'}")
        made = PlanReference(snapshot.id, answer.plan, answer.digest).load(root)
        return made, why_not_computed_here(root, ledger, made)

    with AdminTransport(options.required_admin, writes=True) as transport:
        cluster = AdminCluster(transport)
        yield Roll(
            plan=plan,
            ledger=ledger,
            cluster=cluster,
            leaders_view=_leaders_view(options.metadata_store, cluster),
            plan_anew=plan_anew,
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
