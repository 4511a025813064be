"""All non-public names of Airflow 3.3 that the package uses, but for those of `triggers/taken_over.py`: a triggerer
doesn't wait seconds for the modules of the web server.

`tests/dags/test_internals.py` says what to change here if Airflow changes one. There is no public way for a plugin's
page to find out who is logged in and what they may do, or to read the state of DAG runs and tasks' XComs, nor for a
listener to find what a request for approval has shown.
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
