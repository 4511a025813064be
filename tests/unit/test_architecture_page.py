"""Every module that `docs/architecture.md` names exists, so that a walk through the code never leads nowhere."""

import re
import xml.etree.ElementTree as ET
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


def test_the_picture_shows_every_package_of_the_table() -> None:
    picture = ET.parse(REPOSITORY / "docs" / "pictures" / "packages.svg")
    shown = {text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert shown == set(re.findall(r"^\| \d+ \| `(\w+)` \|", PAGE, re.MULTILINE))
