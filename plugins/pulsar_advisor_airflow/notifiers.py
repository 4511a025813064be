"""Notifies people and the webhook of new advice, a balancer left off, and work that needs a person."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from airflow.sdk import BaseNotifier

from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor_airflow.clusters import cluster_of
from pulsar_advisor_airflow.configuration import (
    advice_notifiers,
    call_notifiers,
    dag_run_link,
    made_notifier,
    webhook,
    with_host,
)
from pulsar_advisor_airflow.failures import RejectedByPerson

Event = Literal[
    "approval.waiting",
    "run.parked",
    "run.abandoned",
    "roll.waiting",
    "task.failed",
    "snapshot.overdue",
    "snapshot.resumed",
]

CHANGES: Final = "changes"
"""Key of the XCom in which `new_advice` leaves a digest of what it found."""
TOLD: Final = "told"
"""Key of the digest that people were last notified of, in the state store of the task's asset."""


class Reached(NamedTuple):
    """The receivers that were notified of an event, and why others weren't."""

    receivers: tuple[int, ...]
    """By their position in the configuration: two may have the same class."""
    failures: tuple[str, ...]
    """Each with its reason."""


class TellAdvice(BaseNotifier):  # type: ignore[misc]
    """Reports new advice through the notifiers of `advice_notifiers` and the webhook. Failures are logged.

    If it reached none of them, the next run reports it again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._notifiers = advice_notifiers()  # one that isn't there is an import error of the DAG

    def notify(self, context: Any) -> None:
        """Errors of notifiers are only logged."""
        ti, known = context["ti"], context["asset_state_store"]
        reached = _reached((type(each).__name__, partial(each, context)) for each in self._notifiers)
        for failure in reached.failures:
            self.log.error("this message reached no one: %s", failure)
        if reached.receivers or not reached.failures:
            known.set(TOLD, ti.xcom_pull(task_ids=ti.task_id, key=CHANGES))


class AdviceWebhook(BaseNotifier):  # type: ignore[misc]
    """Sends the value of the task `new_advice`; an unusable address or key fails only this call."""

    def notify(self, context: Any) -> None:
        """Raises `UsageError`, `NotDelivered`; Airflow logs them, and the task still succeeds."""
        _send("advice.changed", context["ti"].xcom_pull(task_ids=context["ti"].task_id))


class BalancerWebhook(BaseNotifier):  # type: ignore[misc]
    """Sends which cluster's own balancer is still off, and why the task `restore_guard` failed; errors as for
    `AdviceWebhook`."""

    def notify(self, context: Any) -> None:
        """Raises as `AdviceWebhook` does."""
        sentence = str(context.get("exception") or "")
        _send("balancer.still_off", {"cluster": _cluster(context["task"]), "sentence": sentence})


class Call(BaseNotifier):  # type: ignore[misc]
    """Calls somebody about a task through the notifiers of the option `call_notifiers` and the webhook.

    A failure is logged, and the task goes on. `more` is sent with the sentence.
    """

    def __init__(self, event: Event, sentence: str = "", **more: str) -> None:
        super().__init__()
        self.event = event
        self.sentence = sentence
        self.more = more
        for path in call_notifiers():
            made_notifier(path)  # one that isn't there is an import error of the DAG

    def notify(self, context: Any) -> None:
        """Raises nothing: an error would end the calling task, whose next try would lift a pause of the run."""
        task, ti = context["task"], context["ti"]
        if isinstance(context.get("exception"), RejectedByPerson):
            return
        said = {
            "approval.waiting": getattr(task, "subject", ""),
            "task.failed": f"{ti.dag_id}: {ti.task_id} failed: {context.get('exception')}",
        }.get(self.event, self.sentence)
        answered_at = ("tasks", ti.task_id, "required_actions") if self.event == "approval.waiting" else ()
        link = with_host(dag_run_link(ti.dag_id, ti.run_id, *answered_at))
        call = {"cluster": _cluster(task) or cluster_of(ti.dag_id), "sentence": plain(said), "link": link, **self.more}
        _call_or_log(self, self.event, call, context)


class CallAboutTimeout(BaseNotifier):  # type: ignore[misc]
    """Calls somebody about a DAG run that took too long: Airflow skips its tasks, so none of them calls.

    Airflow runs it for every failed DAG run; about other failures, a task has already called.
    """

    def notify(self, context: Any) -> None:
        """Raises nothing, as `Call`."""
        if context.get("reason") != "timed_out":
            return
        dag, run_id = context["dag"], context["run_id"]
        said = f"{dag.dag_id}: not finished after {dag.dagrun_timeout}, so it was ended"
        link = with_host(dag_run_link(dag.dag_id, run_id))
        call = {"cluster": cluster_of(dag.dag_id), "sentence": said, "link": link}
        _call_or_log(self, "task.failed", call, context)


def _call_or_log(notifier: BaseNotifier, event: Event, call: Mapping[str, str], context: Mapping[str, object]) -> None:
    for failure in call_people(event, call, context).failures:
        notifier.log.error("this call reached no one: %s", failure)


def call_people(
    event: Event, call: Mapping[str, str], context: Mapping[str, object], informed: Collection[int] = ()
) -> Reached:
    """Run the notifiers of `call_notifiers`, which find the event as `call` in their templates, and the webhook.

    Each is tried, even if others fail, except receivers that are already `informed`.
    """

    def run(path: str) -> None:
        made_notifier(path)({**context, "call": {"event": event, **call}})

    calls = [(path, partial(run, path)) for path in call_notifiers()]
    return _reached([*calls, ("the webhook", partial(_send, event, call))], informed)


def _send(kind: str, data: Mapping[str, str]) -> bool:
    """Send a message to the webhook, if one is configured; whether one is. Raises `UsageError`, `NotDelivered`."""
    receiver = webhook()
    if receiver is not None:
        receiver.send(kind, data)
    return receiver is not None


def _reached(calls: Iterable[tuple[str, Callable[[], bool | None]]], informed: Collection[int] = ()) -> Reached:
    """Make each call, even if others fail; one that returns False has no receiver."""
    receivers, failures = [], []
    for place, (name, call) in enumerate(calls):
        if place in informed:
            continue
        try:
            if call() is not False:
                receivers.append(place)
        except Exception as error:  # a notifier may raise anything
            failures.append(f"{name}: {error}")
    return Reached(tuple(receivers), tuple(failures))


def _cluster(task: Any) -> str:
    """The cluster that a task is about; empty for a task about all clusters."""
    if name := getattr(task, "cluster", None):
        return str(name)
    arguments = getattr(task, "op_args", None) or ("",)
    return str((getattr(task, "op_kwargs", None) or {}).get("cluster") or arguments[0])
