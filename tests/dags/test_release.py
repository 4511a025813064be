"""Files that are copied apart from the package say of which release they are."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from pulsar_advisor.model.errors import UsageError
from pulsar_advisor_airflow.release import require_release

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
