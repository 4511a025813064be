"""Whether a trigger was cancelled because another triggerer has taken it over."""

from __future__ import annotations

from typing import Any

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance


def is_taken_over(task_instance: Any) -> bool:
    """Whether the task still waits, so that nobody has stopped or cleared it.

    Airflow 3.3 calls `on_kill` also where another triggerer took over from one that seemed dead (apache/airflow#73454).
    """
    deferred = RuntimeTaskInstance.get_ti_count(
        dag_id=task_instance.dag_id,
        run_ids=[task_instance.run_id],
        task_ids=[task_instance.task_id],
        map_index=task_instance.map_index,
        states=["deferred"],
    )
    return bool(deferred)
