"""Files that are copied apart from the package say of which release they are."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor_airflow.release import require_release

if TYPE_CHECKING:
    from airflow.sdk import DAG

REPOSITORY = Path(__file__).parents[2]
COPIED = [*sorted((REPOSITORY / "dags").glob("*.py")), REPOSITORY / "plugins" / "advisor_plugin.py"]


@pytest.mark.parametrize("file", COPIED, ids=lambda file: file.name)
def test_a_file_is_of_the_packages_release(file: Path) -> None:
    assert re.findall(r'^require_release\("(.+)", __file__\)$', file.read_text(), re.MULTILINE) == [
        version("pulsar-rebalance-advisor")
    ]


def test_a_file_of_another_release_is_named_with_both() -> None:
    with pytest.raises(
        UsageError, match=r"pulsar_snapshot\.py is of release 0\.0\.9, and the installed package .* of "
    ):
        require_release("0.0.9", "dags/pulsar_snapshot.py")


def test_a_dag_file_in_an_earlier_airflow_says_which_one_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    import airflow.sdk

    earlier = ModuleType("airflow.sdk")  # without the retry policies of 3.3
    earlier.__path__ = airflow.sdk.__path__
    monkeypatch.setitem(sys.modules, "airflow.sdk", earlier)
    monkeypatch.delitem(sys.modules, "pulsar_advisor_airflow.failures", raising=False)
    with pytest.raises(ImportError, match=r"needs Airflow 3\.3, and an earlier one is installed"):
        import_module("pulsar_advisor_airflow.failures")


def test_a_dag_run_that_began_before_an_upgrade_goes_on_with_the_files_of_the_new_release(
    dags: Mapping[str, DAG],
) -> None:
    """A bundle with versions would give it the files that it began with, which the new package refuses."""
    assert {dag_id for dag_id, dag in dags.items() if not dag.disable_bundle_versioning} == set()
