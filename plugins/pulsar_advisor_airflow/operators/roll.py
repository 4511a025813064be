"""A rolling restart as a task: drains one broker after the other, and is deferred while somebody restarts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Timer
from typing import TYPE_CHECKING, Any, ClassVar, Final

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor_airflow.configuration import option
from pulsar_advisor_airflow.failures import as_airflow_errors, given_plan, logged, root_at
from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
from pulsar_advisor_airflow.ledger import approval_policy, keep_head, opened_ledger
from pulsar_advisor_airflow.links import LedgerLink, PlanLink, ReportLink, RollLink, show_begun
from pulsar_advisor_airflow.notifiers import Call
from pulsar_advisor_airflow.run_limits import STAGE_TIMEOUT

if TYPE_CHECKING:
    from airflow.sdk import Context

    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.execution.roll.conduct import Roll
    from pulsar_advisor.model.plans.canonical_json import Json
    from pulsar_advisor.model.plans.goal import Goal
    from pulsar_advisor.model.plans.plan import Plan
    from pulsar_advisor.storage.root import Root, Snapshot

BACK_WITHIN_S: Final = 30.0
"""How long a worker waits for a restarted broker before the triggerer waits in its place."""
LOOK_AGAIN_S: Final = 60.0
"""How long the triggerer waits at least before a worker checks again."""
LATE_S: Final = 900.0
"""How long after its announced restart a broker counts as late; somebody is then called once."""


class PulsarRollOperator(BaseOperator):  # type: ignore[misc]
    """Carry out an approved roll: a worker drains a broker, then the triggerer waits until somebody has restarted it.

    The ledger holds the roll's whole state, so a try after any crash continues it. The task is deferred too while the
    roll is paused. It fails, without a retry, if a turn ended with steps left, if the approval expires, or if somebody
    ends the roll; clearing the task continues with what is left of the turn.

    :param plan: a `PlanReference` to the roll's plan, as a mapping (templated)
    :param root: path or object-store URL of the root
    :param cluster: name of the cluster in the root
    :param pulsar_conn_id: connection of type `pulsar_admin`
    :param zookeeper_conn_id: connection of type `pulsar_zookeeper` or `pulsar_oxia`, if the metadata store needs one
    """

    template_fields: Sequence[str] = ("plan", "root", "cluster", "pulsar_conn_id", "zookeeper_conn_id")
    operator_extra_links: ClassVar = (RollLink(), ReportLink(), PlanLink(), LedgerLink())

    def __init__(
        self,
        *,
        plan: Any,
        root: str,
        cluster: str,
        pulsar_conn_id: str,
        zookeeper_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.plan = plan
        self.root = root
        self.cluster = cluster
        self.pulsar_conn_id = pulsar_conn_id
        self.zookeeper_conn_id = zookeeper_conn_id
        self._killed: str | None = None
        self._stage: BaseOperator | None = None
        self._called_about: str | None = None

    def on_kill(self) -> None:
        """End the turn after its moves in flight; Airflow allows a few seconds for it."""
        self._killed = "the task was stopped in Airflow"
        if self._stage is not None:
            self._stage.on_kill()

    def execute(self, context: Context) -> Json:
        """The roll's digest, how many bundles it moved, and the ledger's last event."""
        given_plan(self.plan)
        show_begun(self, context)
        return self._carried_on(context, None)

    def go_on(self, context: Context, event: Mapping[str, Json]) -> Json:
        """As `execute`, after what the triggerer waited for has happened."""
        called_about = event.get("called_about")
        self._called_about = None if called_about is None else str(called_about)
        return self._carried_on(context, event)

    def _carried_on(self, context: Context, waited: Mapping[str, Json] | None) -> Json:
        from pulsar_advisor.execution.ledger.rolls import ALL_RESTARTED, give_up
        from pulsar_advisor.execution.roll.status import drained_by, ended_early, filling, status_of, waits_for
        from pulsar_advisor.model.plans.sealed import digest_of
        from pulsar_advisor_airflow.triggers.roll import RollTrigger

        root = root_at(self.root, self.cluster)
        with as_airflow_errors(), opened_ledger(root) as ledger:
            plan, at_least_s = given_plan(self.plan).load(root), 0.0
            # In a shell, as this task doesn't wait after a turn of its own that ended so.
            if waited is not None and (why := ended_early(ledger, plan)) is not None:
                raise AirflowFailException(plain(f"{why}; clear this task to continue"))
            # However short the balancer was on: the drained broker may have bundles again, unless it was drained since.
            if waited is not None and (why_filling := waited.get("why_filling")):
                status = status_of(ledger, plan)
                drain = drained_by(status)
                is_same_drain = waited.get("drained_by", drain) == drain  # an earlier release's triggerer doesn't say
                if is_same_drain and status.restart is not None:
                    give_up(ledger, digest_of(plan))
                    raise AirflowFailException(plain(filling(status.restart, str(why_filling), status.digest)))
            # Otherwise another try, or another worker, has brought it there.
            if waited is not None or waits_for(ledger, plan) is None:
                try:
                    at_least_s = self._carry_on(ledger, root, plan, context)
                finally:
                    keep_head(ledger)
            status = status_of(ledger, plan)
        if status.restart is not None:
            said = f"{status.restart} is drained: restart it, then press Confirm restart on the roll's page"
            logged(self.log.info)(said)
            Call("roll.waiting", said, broker=status.restart, digest=status.digest)(context)
        if status.ended is None:
            trigger = RollTrigger(
                self.root, self.cluster, status.digest, at_least_s, self._called_about, self.pulsar_conn_id
            )
            self.defer(trigger=trigger, method_name=self.go_on.__name__)
        if status.ended != ALL_RESTARTED:
            raise AirflowFailException(plain(f"the roll is over: {status.ended}"))
        return {"digest": status.digest, "moves": status.moves, "ledger_head": status.ledger_head}

    def _carry_on(self, ledger: Ledger, root: Root, plan: Plan, context: Context) -> float:
        """Carry the roll on as far as it goes; returns the seconds after which to check again.

        Raises if a turn could not be completed, unless somebody has paused or ended the roll.
        """
        from pulsar_advisor.execution.consent.turn import CarriedOnElsewhere
        from pulsar_advisor.execution.roll.conduct import NotBackYet, go_on
        from pulsar_advisor.stages.roll import reached

        def turn(snapshot: Snapshot, goal: Goal) -> None:
            self._submitted(snapshot.id, goal, context)

        with reached(
            plan,
            root,
            ledger,
            PulsarAdminHook(self.pulsar_conn_id, self.zookeeper_conn_id).options(),
            approval_policy(self.cluster),
            turn,
            logged(self.log.info),
            lambda: self._killed,
        ) as roll:
            try:
                result = go_on(roll, BACK_WITHIN_S)
            except NotBackYet as not_yet:
                logged(self.log.info)(str(not_yet))
                self._call_if_late(roll, str(not_yet), context)
                return LOOK_AGAIN_S
            except CarriedOnElsewhere as elsewhere:  # a failure would give the roll up under a shell's hands
                logged(self.log.info)(str(elsewhere))
                return LOOK_AGAIN_S
            except Refused as refused:
                why = str(refused)
            else:
                if result is None or result.outcome != "partial":
                    return 0.0
                why = f"{result.sentence}; clear this task to continue"
            recorded = roll.look().recorded
        if recorded.ended is None and recorded.pause is None:
            raise (AirflowException if self._killed else AirflowFailException)(plain(why))
        return LOOK_AGAIN_S

    def _call_if_late(self, roll: Roll, why: str, context: Context) -> None:
        seen = roll.look()
        said_at_ms = seen.recorded.announced_at_ms
        if seen.turn is None or said_at_ms is None or self._called_about == seen.turn.broker:
            return
        minutes = (roll.ledger.now_ms() - said_at_ms) / 60_000
        if minutes * 60 >= LATE_S:
            said = f"{seen.turn.broker} is not back {minutes:.0f} min after its restart was announced: {why}"
            Call("roll.waiting", said, broker=seen.turn.broker, digest=roll.digest)(context)
            self._called_about = seen.turn.broker

    def _submitted(self, snapshot: str, goal: Goal, context: Context) -> None:
        """Have Spark make the plan of a turn, as the installation runs every stage; a hung job is killed."""
        from pulsar_advisor_airflow.operators.spark_stage import PulsarSparkStageOperator

        self._stage = PulsarSparkStageOperator(
            task_id="turn",
            stage="turn",
            root=self.root,
            cluster=self.cluster,
            snapshot=snapshot,
            arguments=(f"--roll={self.plan['digest']}", f"--left={','.join(goal.brokers)}"),
            spark_conn_id=option("spark_conn_id"),
        )
        too_long = Timer(STAGE_TIMEOUT.total_seconds(), self._stage.on_kill)
        too_long.start()
        try:
            self._stage.execute(context)
        finally:
            too_long.cancel()
            self._stage = None
