"""Every module that `docs/architecture.md` names exists, so that a walk through the code never leads nowhere."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
MODULES = sorted(set(re.findall(r"`(pulsar_advisor(?:_airflow)?(?:\.\w+)*)`", PAGE)))


def test_the_walks_name_modules() -> None:
    assert {"pulsar_advisor.capture.surfaces", "pulsar_advisor.admin.secret"} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_a_walk_exists(module: str) -> None:
    assert find_spec(module)
