"""Airflow with a metadata database of its own. Its settings are read once, at the first import, so they come first."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

REPOSITORY = Path(__file__).parents[2]
_home = tempfile.TemporaryDirectory(prefix="airflow-tests-")
os.environ |= {
    "AIRFLOW_HOME": _home.name,
    "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "false",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_home.name}/airflow.db",
    "AIRFLOW__PULSAR_ADVISOR__ROOT": f"{_home.name}/root",
    "AIRFLOW__PULSAR_ADVISOR__CLUSTER": "demo",
}

if TYPE_CHECKING:
    from airflow.sdk import DAG


@pytest.fixture(scope="session")
def dags() -> Mapping[str, DAG]:
    """The DAGs of the repository, by id."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(REPOSITORY / "dags")
    assert bag.import_errors == {}
    return bag.dags
