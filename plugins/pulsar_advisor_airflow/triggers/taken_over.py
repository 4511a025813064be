"""What became of the task whose trigger was cancelled: another triggerer may have taken the trigger over."""

from __future__ import annotations

from typing import Any, Final

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

WAITS: Final = "deferred"
GOES_ON: Final = ("null", "scheduled", "queued", "running", "restarting", "up_for_retry")
"""States of a task that goes on, after its trigger's event or since somebody cleared it; `null`: not yet scheduled."""


def is_in(task_instance: Any, *states: str) -> bool:
    """Whether the task is in one of these states now; if somebody stopped or deleted it, it is in none of the above.

    Airflow 3.3 calls `on_kill` also where another triggerer took over from one that seemed dead (apache/airflow#73454).
    """
    found = RuntimeTaskInstance.get_ti_count(
        dag_id=task_instance.dag_id,
        run_ids=[task_instance.run_id],
        task_ids=[task_instance.task_id],
        map_index=task_instance.map_index,
        states=[*states],
    )
    return bool(found)
