"""`capture` as a task: reads a cluster into a raw snapshot and returns its id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException

from pulsar_advisor_airflow.failures import PROBLEM, as_airflow_errors
from pulsar_advisor_airflow.ledger import seal

if TYPE_CHECKING:
    from airflow.sdk import Context


class PulsarCaptureOperator(BaseOperator):  # type: ignore[misc]
    """Capture a cluster without changing it. A failed capture leaves no snapshot, so it may be retried.

    :param root: path or object-store URL of the root
    :param cluster: name of the cluster in the root
    :param pulsar_conn_id: connection of type `pulsar_admin`
    :param zookeeper_conn_id: connection of type `pulsar_zookeeper`, if the metadata store needs one
    """

    template_fields: Sequence[str] = ("root", "cluster", "pulsar_conn_id", "zookeeper_conn_id")

    def __init__(
        self, *, root: str, cluster: str, pulsar_conn_id: str, zookeeper_conn_id: str | None = None, **kwargs: object
    ) -> None:
        super().__init__(**kwargs)
        self.root = root
        self.cluster = cluster
        self.pulsar_conn_id = pulsar_conn_id
        self.zookeeper_conn_id = zookeeper_conn_id

    def execute(self, context: Context) -> str:
        """The id of the new snapshot. If it fails, the XCom `problem` says why."""
        from pulsar_advisor.stages.capture import run
        from pulsar_advisor.storage.root import Root
        from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook

        try:
            with as_airflow_errors():
                options = PulsarAdminHook(self.pulsar_conn_id, self.zookeeper_conn_id).options()
                root = Root(self.root, self.cluster)
                snapshot = run(options, root)
                seal(root, snapshot, "capture")
                return snapshot
        except AirflowException as error:
            context["ti"].xcom_push(key=PROBLEM, value=str(error))
            raise
