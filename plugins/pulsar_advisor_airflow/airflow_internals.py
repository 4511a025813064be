"""What the package uses of Airflow 3.3 that is no public interface of it, all of it: nothing else imports such names.

`tests/dags/test_internals.py` says of each what has to be changed here if Airflow changes it. There is no public way to
ask in a plugin's page who is logged in and what they may do, to read there the state of DAG runs and what a task said,
or to find in a listener what a request for approval has shown.
"""

from __future__ import annotations

from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session

__all__ = [
    "DagRun",
    "GetUserDep",
    "HITLDetail",
    "TaskInstance",
    "XComModel",
    "create_session",
    "requires_access_dag",
]
