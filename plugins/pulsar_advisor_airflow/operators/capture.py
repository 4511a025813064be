"""`capture` as a task: reads a cluster into a raw snapshot and returns its id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseOperator, conf
from airflow.sdk.exceptions import AirflowException

from pulsar_advisor_airflow.failures import PROBLEM, as_airflow_errors, root_at
from pulsar_advisor_airflow.hooks.pulsar_admin import PulsarAdminHook
from pulsar_advisor_airflow.ledger import seal
from pulsar_advisor_airflow.run_limits import PARK_FROM_S

if TYPE_CHECKING:
    from airflow.sdk import Context

    from pulsar_advisor.admin.options import CaptureOptions
    from pulsar_advisor.model.plans.canonical_json import Json

LISTENING_TIMEOUT: Final = timedelta(minutes=5)
"""What the triggerer may need in addition to the listening time, for instance for a restart."""


class PulsarCaptureOperator(BaseOperator):  # type: ignore[misc]
    """Capture a cluster without changing it. A failed capture leaves no snapshot, so it may be retried.

    A deferrable task occupies no worker while it listens to what Extensible brokers publish. It doesn't hear what is
    published while its worker starts again.

    :param root: path or object-store URL of the root
    :param cluster: name of the cluster in the root
    :param pulsar_conn_id: connection of type `pulsar_admin`
    :param zookeeper_conn_id: connection of type `pulsar_zookeeper` or `pulsar_oxia`, if the metadata store needs one
    :param deferrable: whether the triggerer listens in place of a worker
    """

    template_fields: Sequence[str] = ("root", "cluster", "pulsar_conn_id", "zookeeper_conn_id")

    def __init__(
        self,
        *,
        root: str,
        cluster: str,
        pulsar_conn_id: str,
        zookeeper_conn_id: str | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self.root = root
        self.cluster = cluster
        self.pulsar_conn_id = pulsar_conn_id
        self.zookeeper_conn_id = zookeeper_conn_id
        self.deferrable = deferrable

    def execute(self, context: Context) -> str:
        """The id of the new snapshot. If it fails, the XCom `problem` says why."""
        return self._captured(context, None, may_defer=self.deferrable)

    def go_on(self, context: Context, event: Mapping[str, Json]) -> str:
        """As `execute`, after the triggerer has listened; the event says what it heard."""
        return self._captured(context, event["heard"], may_defer=False)

    def get_openlineage_facets_on_complete(self, _task_instance: object) -> Any:
        """What it wrote, for Airflow's OpenLineage provider."""
        from pulsar_advisor_airflow.lineage import lineage

        return lineage("capture", root_at(self.root, self.cluster))

    def _captured(self, context: Context, heard: Json | None, *, may_defer: bool) -> str:
        from pulsar_advisor.capture.publications import Heard
        from pulsar_advisor.stages.capture import run

        try:
            with as_airflow_errors():
                options = PulsarAdminHook(self.pulsar_conn_id, self.zookeeper_conn_id).options()
                if may_defer:
                    self._defer_listening(options)
                root = root_at(self.root, self.cluster)
                snapshot = run(options, root, earlier=None if heard is None else Heard.unpacked(str(heard)))
                seal(snapshot, "capture")
                return snapshot.id
        except AirflowException as error:
            context["ti"].xcom_push(key=PROBLEM, value=str(error))
            raise

    def _defer_listening(self, options: CaptureOptions) -> None:
        """Have the triggerer listen, if that takes a minute or longer."""
        from pulsar_advisor.capture.capture import opened
        from pulsar_advisor_airflow.triggers.publications import PublicationsTrigger

        if options.service_url is None or options.listen_s < PARK_FROM_S:
            return
        with opened(options.without_metadata_store) as cluster:
            listen_s = cluster.listen_s
        if listen_s:
            self.defer(
                trigger=PublicationsTrigger(self.pulsar_conn_id),
                method_name=self.go_on.__name__,
                timeout=timedelta(seconds=listen_s) + LISTENING_TIMEOUT,
            )
