"""Tells the configured webhook of new advice, and of a balancer that was left off."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseNotifier

from pulsar_advisor_airflow.configuration import webhook


class AdviceWebhook(BaseNotifier):  # type: ignore[misc]
    """Sends the value of the task `new_advice`; an address or key that can't be used is an error of this call only."""

    def notify(self, context: Any) -> None:
        """Raises `UsageError`, `NotDelivered`; Airflow logs them, and the task has ended well."""
        receiver = webhook()
        if receiver is not None:
            receiver.send("advice.changed", context["ti"].xcom_pull(task_ids=context["ti"].task_id))


class BalancerWebhook(BaseNotifier):  # type: ignore[misc]
    """Sends which cluster's own balancer is still off, and why the task `restore_guard` failed; errors as above."""

    def notify(self, context: Any) -> None:
        """Raises as `AdviceWebhook` does."""
        receiver = webhook()
        if receiver is not None:
            cluster = context["task"].op_kwargs.get("cluster") or context["task"].op_args[0]
            receiver.send("balancer.still_off", {"cluster": cluster, "sentence": str(context.get("exception") or "")})
