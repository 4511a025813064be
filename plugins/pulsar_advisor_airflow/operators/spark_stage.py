"""A stage on Spark as a task: `normalize`, `validate`, both in one (`snapshot`), `recommend`, `simulate`, `roll`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor_airflow.configuration import job
from pulsar_advisor_airflow.failures import FINAL_EXIT_CODES, root_at
from pulsar_advisor_airflow.ledger import sealing
from pulsar_advisor_airflow.links import ReportLink

if TYPE_CHECKING:
    from airflow.sdk import Context

SparkStage = Literal["normalize", "validate", "snapshot", "recommend", "simulate", "roll", "turn"]

_SEALED: Final[Mapping[SparkStage, tuple[str, ...]]] = {
    "snapshot": ("normalize", "validate"),
    "simulate": (),
    "roll": ("recommend",),
    "turn": ("normalize", "validate", "recommend"),
}
"""The results to seal for a stage that isn't sealed under its own name."""


class PulsarSparkStageOperator(SparkSubmitOperator):  # type: ignore[misc]
    """Submit one stage. It succeeds once its result file is written, whatever the result says; the ledger seals it.

    A job that ended with a verdict (exit codes 2 to 5) fails its task without a retry.

    :param stage: name of the stage
    :param root: path or object-store URL of the root, the same for Airflow and Spark (templated)
    :param cluster: name of the cluster in the root (templated)
    :param snapshot: id of the snapshot (templated)
    :param arguments: options of the stage's command, such as `--shedder=all` (templated). One that renders to nothing
        is left out; one that renders to a list counts as several
    :param spark_conn_id: connection of type `spark`

    Other parameters are those of `SparkSubmitOperator`.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "root", "cluster", "snapshot")

    def __init__(
        self,
        *,
        stage: SparkStage,
        root: str,
        cluster: str,
        snapshot: Any,
        arguments: Sequence[str] = (),
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", f"pulsar-advisor {stage}")
        # At INFO a stage writes tens of thousands of lines to the task log.
        kwargs.setdefault("conf", {"spark.log.level": "WARN"})
        super().__init__(
            application=job(stage),
            application_args=[f"--root={root}", f"--cluster={cluster}", "--snapshot", snapshot, *arguments],
            conn_id=spark_conn_id,
            **kwargs,
        )
        self.stage = stage
        self.root = root
        self.cluster = cluster
        self.snapshot = snapshot
        self.operator_extra_links = (ReportLink(),) if stage == "recommend" else ()

    def execute(self, context: Context) -> None:
        """Run the job. Raises `AirflowFailException` for a verdict, `AirflowException` for what a retry may fix."""
        if not isinstance(self.snapshot, str):  # an XCom can be edited, and a list would count as several options
            raise AirflowFailException(plain(f"{self.snapshot!r} is not a snapshot's id"))
        self.application_args: list[str] = list(_flat(self.application_args))
        root, sealed = root_at(self.root, self.cluster), _SEALED.get(self.stage, (self.stage,))
        try:
            with sealing(root.snapshot(self.snapshot), *sealed):
                super().execute(context)
        except AirflowException as error:
            code = re.search(r"Error code is: (\d+)", str(error))
            if code is None or int(code[1]) not in FINAL_EXIT_CODES:
                raise
            why = f"{self.stage} ended with exit code {code[1]}: its last line in the log says why"
            raise AirflowFailException(why) from error  # whose message is the whole command

    def get_openlineage_facets_on_complete(self, _task_instance: object) -> Any:
        """What it read and wrote, for Airflow's OpenLineage provider."""
        from pulsar_advisor_airflow.lineage import lineage

        return lineage(self.stage, root_at(self.root, self.cluster))


def _flat(arguments: Sequence[Any]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, list):
            yield from map(str, argument)
        elif argument != "":
            yield str(argument)
