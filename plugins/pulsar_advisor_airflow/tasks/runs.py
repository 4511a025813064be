"""Runs that a DAG run began, or whose task has ended, and the restarts that a roll waits for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import get_current_context

from pulsar_advisor.execution.ledger.plans import recorded_plan
from pulsar_advisor.execution.ledger.rolls import roll_of_plan, runs_of_roll
from pulsar_advisor.execution.ledger.runs import LEASE_MS, end_unheld_run, is_held
from pulsar_advisor.execution.person import Person
from pulsar_advisor_airflow.failures import as_airflow_errors
from pulsar_advisor_airflow.ledger import AUTHENTICATED_BY, opened_ledger
from pulsar_advisor_airflow.links import BEGUN, HELD, hold_of
from pulsar_advisor_airflow.tasks.root import root_of

if TYPE_CHECKING:
    from pulsar_advisor.execution.ledger.ledger import Ledger
    from pulsar_advisor.execution.ledger.tables import Hold

log = logging.getLogger(__name__)

_HOLDER_POLL_S: Final = 5.0
_AT_WORK_MS: Final = 60_000
"""Whoever works on a run renews its lease several times within this."""


def has_begun() -> bool:
    """Whether the task above this one that carries the plan out has begun to in this DAG run.

    Its state doesn't show that: if somebody ends the DAG run, Airflow skips a task that runs and one that never began.
    """
    return any(_said_above(BEGUN))


def last_held() -> Hold | None:
    """What that task held last, of no run if it never held one; None if it doesn't say, as in earlier releases."""
    return hold_of(next(filter(None, _said_above(HELD)), None))


def _said_above(key: str) -> Sequence[Any]:
    ti = get_current_context()["ti"]
    return list(ti.xcom_pull(task_ids=sorted(ti.task.upstream_task_ids), key=key))


def await_end(ledger: Ledger, digest: str) -> int | None:
    """Wait while a worker holds a run of a plan whose task has ended; until its lease expires, if it was killed.

    Then a run that no worker continues is ended, so that it doesn't keep others from its cluster, unless another task
    has parked it; but a roll must know that a turn's run only lost its process. Returns the number of a run that goes
    on nevertheless.
    """
    deadline_s = monotonic() + LEASE_MS / 1000
    while run := next((run for run in runs_of_roll(ledger, digest) if is_held(ledger, run)), None):
        # A worker that was killed since this began may have renewed its lease, which then outlasts the deadline.
        if monotonic() >= deadline_s and ledger.now_ms() - run.heartbeat_at_ms < _AT_WORK_MS:
            return run.id
        log.info("run %s is held by a worker that may be gone: waiting until it ends or its lease expires", run.id)
        sleep(_HOLDER_POLL_S)
    if roll_of_plan(ledger, digest) is None:
        end_unheld_run(ledger, digest, "its task in Airflow has ended", last_held())
    return None


def report_restart(cluster: str, digest: str, broker: str) -> None:
    """Announce, as this DAG run, that a roll's drained broker was restarted; it goes on once the cluster shows that."""
    from pulsar_advisor.execution.roll.steering import announce

    context = get_current_context()
    with as_airflow_errors(), opened_ledger(root_of(cluster)) as ledger:
        announce(ledger, recorded_plan(ledger, digest), broker, Person(context["dag"].dag_id, AUTHENTICATED_BY))
