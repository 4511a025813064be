"""Failures by kind: what a retry can't fix fails at once; an unreachable cluster gets more time than a disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict

import msgspec
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from pulsar_advisor.model.errors import AdvisorError, ClusterUnreachable
from pulsar_advisor.model.text.plain_text import plain
from pulsar_advisor.model.text.reader import read_by
from pulsar_advisor_airflow.reader import IN_AIRFLOW

try:
    from airflow.sdk import ExceptionRetryPolicy, RetryRule
except ImportError as error:  # each DAG file comes here first
    raise ImportError("the Pulsar Rebalance Advisor needs Airflow 3.3, and an earlier one is installed") from error

if TYPE_CHECKING:
    from airflow.sdk import Context

    from pulsar_advisor.storage.plans import PlanReference
    from pulsar_advisor.storage.root import Root

UNEXPECTED = AdvisorError.exit_code
"""Exit code of unreachable clusters and unwritable storage, the only errors that may resolve themselves."""

PROBLEM: Final = "problem"
"""Key of the XCom in which a task that reads the cluster leaves what didn't answer, for the pages."""

FINAL_EXIT_CODES: Final = frozenset({2, 3, 4, 5})


class ClusterDidNotAnswer(AirflowException):  # type: ignore[misc]
    """The cluster, or ZooKeeper, couldn't be reached or refused access."""


class RejectedByPerson(AirflowFailException):  # type: ignore[misc]
    """A person has answered no: the task fails, and no one is called about it."""


class Retries(TypedDict):
    """Arguments of an operator."""

    retries: int
    retry_delay: timedelta
    retry_policy: ExceptionRetryPolicy


def is_retried(context: Context) -> bool:
    """Whether Airflow itself has retried this task, since a person last cleared it if anybody did."""
    ti = context["ti"]
    return bool(ti.try_number > ti.max_tries - ti.task.retries + 1)


def is_cleared(context: Context) -> bool:
    """Whether a person has restarted this task by clearing it."""
    return was_ever_cleared(context) and not is_retried(context)


def was_ever_cleared(context: Context) -> bool:
    """Whether a person has cleared this task, even if Airflow has retried it since.

    A DAG run's `clear_number` doesn't count this if the call said `reset_dag_runs: false`.
    """
    ti = context["ti"]
    return bool(ti.max_tries > ti.task.retries)


RETRIES: Final[Retries] = {
    "retries": 2,
    "retry_delay": timedelta(minutes=1),
    "retry_policy": ExceptionRetryPolicy(
        [RetryRule(ClusterDidNotAnswer, retry_delay=timedelta(minutes=5), reason="a restarted broker takes minutes")]
    ),
}
"""How our tasks are retried."""


def given_plan(plan: Any) -> PlanReference:
    """The reference to the plan passed to a task. Without one, the task fails for good.

    It comes from an XCom, which whoever may edit the DAG run can set to anything.
    """
    from pulsar_advisor.storage.plans import PlanReference

    try:
        return msgspec.convert(plan, PlanReference)
    except msgspec.ValidationError as error:
        why = plain(str(error))
        raise AirflowFailException(f"no plan was handed to this task ({why}): trigger a new DAG run") from error


def root_at(url: str, cluster: str) -> Root:
    """A cluster's root. An invalid URL fails the task for good."""
    from pulsar_advisor.storage.root import Root

    with as_airflow_errors():
        return Root(url, cluster)


def logged(log: Callable[[str], None]) -> Callable[[str], None]:
    """A function that logs a line without control characters, with which names could hide, colour or reverse text."""
    return lambda line: log(plain(line))


@contextmanager
def as_airflow_errors() -> Iterator[None]:
    """Raise `AirflowFailException` (never retried) for all exit codes but 1, else another Airflow error.

    Messages within the block are worded for a reader in Airflow.
    """
    try:
        with read_by(IN_AIRFLOW):
            yield
    except OSError as error:
        from pulsar_advisor.storage.files import refused_by_storage

        raise AirflowException(str(refused_by_storage(error))) from error
    except AdvisorError as error:
        said = str(error)
        if isinstance(error, ClusterUnreachable):
            raise ClusterDidNotAnswer(said) from error
        kind = AirflowException if error.exit_code == UNEXPECTED else AirflowFailException
        raise kind(said) from error
