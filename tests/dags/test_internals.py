"""What the package uses of Airflow beside its public interface: only in two files, and as it is in Airflow 3.3."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "plugins" / "pulsar_advisor_airflow"
INTERNALS = {PACKAGE / "airflow_internals.py", PACKAGE / "triggers" / "taken_over.py"}

PUBLIC = {
    "airflow.sdk",
    "airflow.sdk.bases.decorator",
    "airflow.sdk.definitions.context",
    "airflow.sdk.exceptions",
    "airflow.sdk.observability",
    "airflow.listeners",
    "airflow.plugins_manager",
    "airflow.triggers.base",
}
"""Airflow's reference of its public interface, and its how-tos for decorators and metrics, name these modules."""


def imported(file: Path) -> Iterator[str]:
    """The modules of Airflow that a file imports, but for providers, which have releases of their own."""
    for node in ast.walk(ast.parse(file.read_text())):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for module in modules:
            if module.partition(".")[0] == "airflow" and not module.startswith("airflow.providers."):
                yield module


def test_only_two_files_use_what_is_not_public() -> None:
    files = {*(REPOSITORY / "plugins").rglob("*.py"), *(REPOSITORY / "dags").glob("*.py")}
    found = {str(file): set(imported(file)) - PUBLIC for file in files if file not in INTERNALS}
    assert {file: modules for file, modules in found.items() if modules} == {}
    assert not {module for file in INTERNALS for module in imported(file)} & PUBLIC


@pytest.mark.parametrize(
    ("name", "uses", "change"),
    [
        ("requires_access_dag", {"method", "param_dag_id"}, "pages/access.py asks it for a DAG by its id"),
        ("create_session", {"scoped"}, "pages/dag_runs.py and listeners.py read in a session of it"),
    ],
)
def test_a_function_takes_what_is_given_to_it(name: str, uses: set[str], change: str) -> None:
    from pulsar_advisor_airflow import airflow_internals

    taken = set(inspect.signature(getattr(airflow_internals, name)).parameters)
    assert uses <= taken, f"{name} takes {sorted(taken)}: {change}"


def test_a_trigger_can_ask_how_many_of_its_tasks_are_deferred() -> None:
    from pulsar_advisor_airflow.triggers.taken_over import RuntimeTaskInstance

    taken = set(inspect.signature(RuntimeTaskInstance.get_ti_count).parameters)
    assert {"dag_id", "run_ids", "task_ids", "map_index", "states"} <= taken


@pytest.mark.parametrize(
    ("name", "columns", "change"),
    [
        ("DagRun", {"id", "dag_id", "run_id", "state", "end_date"}, "newest_runs in pages/dag_runs.py"),
        ("TaskInstance", {"dag_id", "run_id", "task_id", "state", "end_date"}, "newest_runs in pages/dag_runs.py"),
        ("XComModel", {"dag_run_id", "task_id", "key", "value"}, "newest_runs in pages/dag_runs.py"),
        ("HITLDetail", {"ti_id", "subject"}, "_shown_digest in listeners.py"),
    ],
)
def test_a_table_has_the_columns_that_are_read(name: str, columns: set[str], change: str) -> None:
    from pulsar_advisor_airflow import airflow_internals

    missing = {column for column in columns if not hasattr(getattr(airflow_internals, name), column)}
    assert missing == set(), f"{name} lacks {sorted(missing)}: change {change}"
