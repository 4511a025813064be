"""`apply` as a task: carries out a plan that the ledger says was approved, and goes on where an earlier try ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from pulsar_advisor_airflow.failures import as_airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Context


class PulsarApplyOperator(BaseOperator):  # type: ignore[misc]
    """Carry out an approved plan. A refusal, or a run that ended with steps left, is never tried again by itself.

    A try that follows a crash resumes the run from what the cluster shows; clearing the task does the same for a run
    that stopped. A try that begins in another container or on another host, while the one before may be alive, waits
    for the end of its run or of its lease.

    :param plan: a `PlanReference` as a mapping (templated)
    :param root: path or object-store URL of the root
    :param cluster: name of the cluster in the root
    :param pulsar_conn_id: connection of type `pulsar_admin`
    :param pause_s: seconds between two calls (templated)
    :param canary_hold_s: seconds the first step must hold before the second is sent (templated)
    :param guard: switch the cluster's own shedding and automatic splits off meanwhile
    :param max_age_h: greatest age of the plan's snapshot, in hours (templated)
    """

    template_fields: Sequence[str] = (
        "plan",
        "root",
        "cluster",
        "pulsar_conn_id",
        "pause_s",
        "canary_hold_s",
        "max_age_h",
    )

    def __init__(
        self,
        *,
        plan: Any,
        root: str,
        cluster: str,
        pulsar_conn_id: str,
        pause_s: float | str = 10,
        canary_hold_s: float | str = 60,
        max_age_h: float | str = 6,
        guard: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.plan = plan
        self.root = root
        self.cluster = cluster
        self.pulsar_conn_id = pulsar_conn_id
        self.pause_s = pause_s
        self.canary_hold_s = canary_hold_s
        self.max_age_h = max_age_h
        self.guard = guard
        self._killed: str | None = None

    def on_kill(self) -> None:
        """Have the run end once the step in flight is done; Airflow gives it some seconds."""
        self._killed = "the task was stopped in Airflow"

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """The result of the run, `pulsar-advisor/apply-result/1`."""
        from pulsar_advisor.execution.executor import ApplyOptions
        from pulsar_advisor.stages.apply import run
        from pulsar_advisor.storage.plans import PLANS, PlanReference
        from pulsar_advisor.storage.root import Root
        from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
        from pulsar_advisor_airflow.ledger import opened_ledger

        root = Root(self.root, self.cluster)
        reference = PlanReference(**self.plan)
        with as_airflow_errors(), opened_ledger(root) as ledger:
            connection = PulsarAdminHook(self.pulsar_conn_id).options()
            unfinished = any(run.state in ("active", "stopped") for run in ledger.runs(reference.digest))
            options = ApplyOptions(
                pause_s=float(self.pause_s),
                canary_hold_s=float(self.canary_hold_s),
                max_age_s=int(float(self.max_age_h) * 3600),
                guard=self.guard,
                resume=unfinished,
                wait_for_holder=True,
                undo_folder=root.folder(PLANS, reference.snapshot),
            )
            result = run(
                reference.load(root),
                ledger,
                connection.required_admin,
                options,
                self.log.info,
                interruption=lambda: self._killed,
            )
        self.log.info(result.sentence)
        if result.exit_code:
            raise AirflowFailException(f"{result.sentence}; clear this task to continue")
        return result.as_document()
