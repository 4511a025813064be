"""`apply` as a task: carries out a plan that is approved in the ledger, and resumes where an earlier try ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from airflow.sdk import BaseOperator, conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from pulsar_advisor.documents.document import as_json
from pulsar_advisor.execution.ledger.runs import holder_of, runs_of_plan, unfinished_run
from pulsar_advisor.execution.ledger.unfinished import ended_runs
from pulsar_advisor.execution.run.parking import Parking, parking_of
from pulsar_advisor.model.bounds import next_time
from pulsar_advisor.model.errors import AdvisorError, Refused
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.planning.kinds.goal_outcome import FALLS_SHORT, goal_outcome
from pulsar_advisor.storage.process import this_process
from pulsar_advisor_airflow.assets import announce
from pulsar_advisor_airflow.clusters import dag_of
from pulsar_advisor_airflow.failures import (
    as_airflow_errors,
    given_plan,
    is_cleared,
    is_retried,
    logged,
    root_at,
)
from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
from pulsar_advisor_airflow.ledger import approval_policy, keep_head, opened_ledger
from pulsar_advisor_airflow.links import HELD, LedgerLink, PlanLink, ReportLink, hold_of, show_begun
from pulsar_advisor_airflow.notifiers import Call
from pulsar_advisor_airflow.run_limits import PARK_FROM_S

if TYPE_CHECKING:
    from airflow.sdk import Context

    from pulsar_advisor.execution.ledger.tables import Hold
    from pulsar_advisor.execution.run.end_of_run import AttemptResult
    from pulsar_advisor.model.plans.canonical_json import Json

_CLEARED_AT: Final = "cleared_at"
_BEGUN: Final = "begun"
"""Keys in the task's state store, which its later tries see."""
_OF_NO_RUN: Final = (0, 0)
"""The `Hold` of a task that has held no run yet."""


class PulsarApplyOperator(BaseOperator):  # type: ignore[misc]
    """Carry out an approved plan under the throttle that was approved with it.

    A refusal, or a run that ended with steps left, is never retried automatically, unless it ended because its worker
    did. Such a retry, or one after a crash, resumes the run from the cluster's current state. It respects a requested
    pause, and leaves a run that others have gone on with since, and stopped or parked. Clearing the task also resumes a
    stopped run, and lifts its pause. A try that starts in another container or on another host while the previous one
    may be alive waits until its run or its lease ends. Until a try has begun, a plan that is being carried out fails
    the task: another DAG run, or a shell, alone decides whether it goes on.

    The task also fails if, once its steps are done, clients still use a broker that the plan drains.

    A deferrable task occupies no worker while the run waits for a minute or longer, or until somebody lets a paused run
    go on. A run that keeps the cluster's own balancer off waits in its worker, which restores the balancer.

    :param plan: a `PlanReference` as a mapping (templated)
    :param root: path or object-store URL of the root
    :param cluster: name of the cluster in the root
    :param pulsar_conn_id: connection of type `pulsar_admin`
    :param until: a time of day, HH:MM in UTC, after which nothing is sent: the first one after the start of the DAG
        run, or after the task was cleared (templated)
    :param deferrable: whether the triggerer waits in place of a worker
    """

    template_fields: Sequence[str] = (
        "plan",
        "root",
        "cluster",
        "pulsar_conn_id",
        "until",
    )
    operator_extra_links: ClassVar = (ReportLink(), PlanLink(), LedgerLink())

    def __init__(
        self,
        *,
        plan: Any,
        root: str,
        cluster: str,
        pulsar_conn_id: str,
        until: str | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.plan = plan
        self.root = root
        self.cluster = cluster
        self.pulsar_conn_id = pulsar_conn_id
        self.until = until
        self.deferrable = deferrable
        self._killed: str | None = None

    def on_kill(self) -> None:
        """End the run after the steps in flight; Airflow allows a few seconds for it.

        Either a user has set the task's state, which Airflow keeps, or the worker ends, and another try is due.
        """
        self._killed = "the task was stopped in Airflow"

    def execute(self, context: Context) -> Json:
        """Which run carried out which plan, how it ended, and the ledger's last event; the rest is in the ledger."""
        given_plan(self.plan)
        kept = context["task_state_store"]
        is_for_us = kept.get(_BEGUN) or is_cleared(context)
        if not is_for_us:
            self._require_nobody_at_it()
        kept.set(_BEGUN, value=True)
        show_begun(self, context)
        held = hold_of(kept.get(HELD))
        if held is None and not is_retried(context):  # so that none is what earlier releases said
            held = _OF_NO_RUN
        if held is not None:  # Airflow has removed the XCom of an earlier try
            _say_held(context, held)
        try:
            return self._carried_out(context, None)
        except Exception:
            # Until the next try, and in the seconds of this one, somebody else may begin a run.
            if not self._is_under_way(by_anybody=is_for_us):
                kept.set(_BEGUN, value=False)
            raise

    def go_on(self, context: Context, event: Mapping[str, Json]) -> Json:
        """Continue a parked run, and return its result; the event says which wait is over."""
        return self._carried_out(context, parking_of(event["waited"]))

    def _require_nobody_at_it(self) -> None:
        """Fail if the plan is being carried out."""
        with as_airflow_errors(), opened_ledger(root_at(self.root, self.cluster)) as ledger:
            ended_runs(ledger, given_plan(self.plan).digest, "wait until the other DAG run, or the shell, has ended it")

    def _is_under_way(self, *, by_anybody: bool) -> bool:
        """Whether a run of the plan, or one that this process was the last to hold, isn't over.

        Also if the ledger doesn't answer.
        """
        try:
            with opened_ledger(root_at(self.root, self.cluster)) as ledger:
                run = unfinished_run(runs_of_plan(ledger, given_plan(self.plan).digest))
            return run is not None and (by_anybody or holder_of(run) == this_process())
        except AdvisorError:
            return True

    def _carried_out(self, context: Context, waited: Parking | None) -> Json:
        with as_airflow_errors():
            until = next_time(self.until, _began(context)) if self.until else None

        last_held = waited.hold if waited else _held_before(context)
        on_held = partial(_say_held, context)
        result = self._run(waited, until, lifts_pause=not is_retried(context), last_held=last_held, on_held=on_held)
        if result.parking is not None:
            from pulsar_advisor_airflow.triggers.parked_run import ParkedRunTrigger

            assert result.run is not None
            if result.parking.why == "request":  # the clock ends the other waits
                Call("run.parked", f"run {result.run} of {result.digest}: {result.sentence}")(context)
            self.defer(
                trigger=ParkedRunTrigger(self.root, self.cluster, result.run, as_json(result.parking)),
                method_name=self.go_on.__name__,
            )
        said = plain(result.sentence)
        self.log.info("%s; ledger: %s", said, result.ledger_head)
        rebalance = dag_of("pulsar_rebalance", self.cluster)
        back = f"to undo it, trigger {rebalance} with digest {result.digest} and Undo ticked"
        if result.undoable_steps:
            self.log.info(back)
        if result.still_off:
            off = " and ".join(result.still_off)
            self.log.error("%s, balancer still off: %s; the task restore_guard tries again", result.outcome, off)
        if result.outcome == "partial":
            on = f"clear this task to continue{result.first or ''}" if result.is_left else "to go on, make a new plan"
            choices = [on, *([back] if result.undoable_steps else [])]
            kind = AirflowException if self._killed else AirflowFailException
            raise kind(f"{said}; {'; '.join(choices)}")
        foretold = goal_outcome(given_plan(self.plan).load(root_at(self.root, self.cluster)))
        if result.goal_outcome in FALLS_SHORT and result.goal_outcome != foretold:
            raise AirflowFailException(f"{said}; clear this task to look again")
        announce(context, cluster=self.cluster, digest=result.digest, run=result.run)
        return {name: getattr(result, name) for name in ("digest", "run", "outcome", "ledger_head")}

    def _run(
        self,
        waited: Parking | None,
        until: datetime | None,
        *,
        lifts_pause: bool,
        last_held: Hold | None,
        on_held: Callable[[Hold], None],
    ) -> AttemptResult:
        from pulsar_advisor.execution.run.options import ApplyOptions
        from pulsar_advisor.stages.apply import run

        root = root_at(self.root, self.cluster)
        reference = given_plan(self.plan)
        with as_airflow_errors(), opened_ledger(root) as ledger:
            connection = PulsarAdminHook(self.pulsar_conn_id).options()
            unfinished = unfinished_run(runs_of_plan(ledger, reference.digest)) is not None
            options = ApplyOptions(
                policy=approval_policy(self.cluster),
                resume=unfinished,
                until=until,
                lifts_pause=lifts_pause,
                wait_for_holder=True,
                park_from_s=PARK_FROM_S if self.deferrable else None,
                waited=waited,
                last_held=last_held,
                on_held=on_held,
            )
            try:
                return run(
                    reference.load(root),
                    ledger,
                    connection.required_admin,
                    options,
                    logged(self.log.info),
                    interruption=lambda: self._killed,
                )
            except Refused as refused:
                if self._killed:  # before the first call, so another try may succeed
                    raise AirflowException(str(refused)) from refused
                raise
            finally:
                keep_head(ledger)


def _held_before(context: Context) -> Hold | None:
    """What an earlier try held last, of no run if none did. None in a try that may take any: that a person began, or
    after one of an earlier release, which didn't say.
    """
    return hold_of(context["task_state_store"].get(HELD)) if is_retried(context) else None


def _say_held(context: Context, hold: Hold) -> None:
    """To later tries of the task, and to those after it."""
    context["task_state_store"].set(HELD, list(hold))
    context["ti"].xcom_push(key=HELD, value=list(hold))


def _began(context: Context) -> datetime:
    """When the DAG run began or, if a person has cleared the task since, its first try after that."""
    kept = context["task_state_store"]
    if is_cleared(context):
        kept.set(_CLEARED_AT, context["ti"].start_date.isoformat())
    cleared_at = kept.get(_CLEARED_AT)
    began = datetime.fromisoformat(cleared_at) if cleared_at else context["dag_run"].start_date
    return began.astimezone(UTC)
