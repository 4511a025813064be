"""`@task.pulsar_stage`: a stage on Spark whose options a function computes when the task runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.decorator import DecoratedOperator, TaskDecorator, determine_kwargs, task_decorator_factory
from airflow.sdk.definitions.context import context_merge

from pulsar_advisor_airflow.operators.spark_stage import PulsarSparkStageOperator

if TYPE_CHECKING:
    from airflow.sdk import Context
    from pydantic import JsonValue


class _SparkStageDecoratedOperator(DecoratedOperator, PulsarSparkStageOperator):  # type: ignore[misc]
    template_fields: Sequence[str] = (*DecoratedOperator.template_fields, *PulsarSparkStageOperator.template_fields)
    custom_operator_name = "@task.pulsar_stage"
    overwrite_rtif_after_execution = True

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, JsonValue] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("multiple_outputs", None)
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs)

    def execute(self, context: Context) -> None:
        context_merge(context, self.op_kwargs)
        kwargs = determine_kwargs(self.python_callable, self.op_args, context)
        options = self.python_callable(*self.op_args, **kwargs)
        if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
            raise TypeError(f"{self.task_id} must return the stage's options as a list of texts, not {options!r}")
        self.application_args = [*self.application_args, *options]
        super().execute(context)


def spark_stage_task(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> TaskDecorator:
    """Run a stage on Spark with the options that the decorated function returns, such as `["--shedder=all"]`.

    Other parameters are those of `PulsarSparkStageOperator`.
    """
    return task_decorator_factory(
        python_callable=python_callable, decorated_operator_class=_SparkStageDecoratedOperator, **kwargs
    )
