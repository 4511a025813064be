"""The example of CONTRIBUTING: four files make a shedder that is on offer everywhere, with no other change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NAME = "MostTopicsShedder"

REPORT = f"""
from pulsar_advisor.planning.plans.propose import propose
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.reporting.markdown import render_markdown
from unit.reporting.skewed import Inputs, make_plan, recommendation_of, skewed_settings, skewed_state, validation_of

state, settings = skewed_state(), skewed_settings()
request = Request(shedder="{NAME}", placement="RoundRobinBrokerSelector", splits=False)
((_, proposal),) = propose(request, state, settings.values)
plan = make_plan(state, settings, moves=proposal.moves, shedder="{NAME}", why_nothing=proposal.why_nothing)
inputs = Inputs(state, recommendation_of((plan,)), (plan,), validation_of(), [], plan.settings)
print(render_markdown(inputs.page()))
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working tree without what git ignores, with the example's files where its README says they go."""
    clone = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, target = REPOSITORY / name, clone / name
        if source.exists() or source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    example, package = clone / "docs" / "examples", clone / "jobs" / "pulsar_advisor" / "shedding"
    shutil.copy2(example / "most_topics_shedder.py", package)
    shutil.copy2(example / f"{NAME}.md", clone / "docs" / "strategies")
    shutil.copy2(example / f"{NAME}.json", clone / "tests" / "data" / "strategies")
    registry = package / "registry.py"
    text = registry.read_text()
    end_of_shedders = text.index("\n)\n", text.index("SHEDDERS: Final = (")) + 1
    line = (example / "registry_line.txt").read_text()
    registry.write_text(text[:end_of_shedders] + line + text[end_of_shedders:])
    return clone


def python(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the clone's own code answers."""
    folders = os.pathsep.join(str(clone / folder) for folder in ("jobs", "plugins", "tests"))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": folders, "AIRFLOW_HOME": str(clone / "airflow")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_line_offers_it(clone: Path) -> None:
    main = "from pulsar_advisor.cli import main; main()"
    words = ("recommend", "--root", str(clone / "root"), "--cluster", "c", "--shedder")
    wrong, right = (python(clone, "-c", main, *words, name) for name in ("MostTopics", NAME))
    assert f"the nearest is '{NAME}'" in wrong.stderr
    assert NAME not in right.stderr


def test_the_form_of_the_dags_offers_it(clone: Path) -> None:
    code = "from pulsar_advisor_airflow.forms import *; print(strategy_params(ALL, ALL)['shedder'].schema['enum'])"
    answer = python(clone, "-c", code)
    assert NAME in answer.stdout, answer.stderr


def test_a_report_shows_what_it_would_do_and_why(clone: Path) -> None:
    answer = python(clone, "-c", REPORT)
    assert NAME in answer.stdout, answer.stderr
    assert "topics are above mean plus threshold" in answer.stdout


def test_the_tables_of_the_documentation_get_a_row(clone: Path) -> None:
    assert python(clone, "docs/generate.py", "--check").returncode == 1
    answer = python(clone, "docs/generate.py")
    assert answer.returncode == 0, answer.stderr
    assert f"| [{NAME}]({NAME}.md) |" in (clone / "docs" / "strategies" / "README.md").read_text()
    assert f"| {NAME} | shedder |" in (clone / "docs" / "checks.md").read_text()


def test_the_tests_for_all_shedders_find_it_and_pass(clone: Path) -> None:
    answer = python(
        clone, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-k", NAME, "tests/unit/shedding", "tests/unit/planning"
    )
    assert answer.returncode == 0, answer.stdout
    for test in (
        f"test_the_decision_is_the_one_expected[{NAME}-most-topics-first]",
        f"test_it_has_a_page_that_names_its_settings[{NAME}]",
        f"test_everything_looked_at_has_one_answer[{NAME}]",
        f"test_everything_a_strategy_says_it_reads_can_change_its_answer[shed-{NAME}]",
    ):
        assert f"{test} PASSED" in answer.stdout
